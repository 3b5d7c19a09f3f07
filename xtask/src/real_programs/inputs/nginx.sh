mkdir tmp
nginx -p . -c nginx.conf -e stderr & P=$!
until curl -s -o /dev/null http://127.0.0.1:28089/words.txt; do sleep 0.1; kill -0 $P || exit 1; done
curl -s http://127.0.0.1:28089/words.txt | sha256sum
curl -s -o /dev/null -w '%{http_code}\n' http://127.0.0.1:28089/missing
wrk -t2 -c8 -d1s http://127.0.0.1:28089/words.txt > wrk.log
grep -c Non-2xx wrk.log
kill -QUIT $P
wait $P
echo server $?
