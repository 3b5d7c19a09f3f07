memcached -u "$(id -un)" -s ./s -t 4 & P=$!
$PYTHON memcached_load.py
kill $P
wait $P
echo server $?
