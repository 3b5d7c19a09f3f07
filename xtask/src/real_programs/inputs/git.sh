export GIT_AUTHOR_DATE=2026-01-02T03:04:05Z GIT_COMMITTER_DATE=2026-01-02T03:04:05Z GIT_CONFIG_NOSYSTEM=1
git init -q -b main repo && cd repo && git config user.name n && git config user.email e@example.org
for i in 1 2 3; do tail -n $((i * 50)) ../words.txt > f$i; git add . && git commit -q -m "commit $i"; done
git log --stat --format='%H %s'
git checkout -q -b other HEAD~1 && echo x >> f1 && git commit -qam other
git merge -q -m merged main
git gc -q && git fsck --strict && git diff HEAD~1 | tail -3 && git grep -c ba
