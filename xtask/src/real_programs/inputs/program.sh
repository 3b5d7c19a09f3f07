trap 'echo exit trap' EXIT
trap 'echo got usr1' USR1
kill -USR1 $$
for i in $(seq 1 20); do echo $((i * i)); done | while read -r n; do [ $((n % 2)) = 0 ] && echo "even $n"; done
f() { local x=$1; [ "$x" -le 1 ] && { echo 1; return; }; echo $((x * $(f $((x - 1))))); }
f 6
cat <(head -2 words.txt) <(tail -1 words.txt)
sleep 0.01 & wait $!; echo "waited $?"
(exit 7) || echo "subshell $?"
{ (kill -SEGV $BASHPID); } 2>/dev/null; echo "signal $?"
declare -A map=([a]=1 [b]=2); echo "${map[a]}${map[b]}" "${!map[@]}" | tr ' ' '\n' | sort
printf '%s\n' "${BASH_VERSINFO[0]}" >&2
exit 12
