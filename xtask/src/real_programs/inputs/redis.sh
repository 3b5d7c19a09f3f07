redis-server --port 0 --unixsocket ./s --save '' --appendonly no --dir . > server.log & P=$!
until [ "$(redis-cli -s ./s ping 2>/dev/null)" = PONG ]; do sleep 0.1; done
redis-benchmark -s ./s -n 2000 -c 8 -r 100 -t set,get,incr,lpush -q > benchmark.log && echo benchmark done
redis-cli -s ./s set key value
redis-cli -s ./s get key
redis-cli -s ./s eval 'return redis.call("get", "key")' 0
redis-cli -s ./s llen mylist
redis-cli -s ./s shutdown nosave
wait $P
echo server $?
