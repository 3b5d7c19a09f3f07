import socket, threading, time

def connect():
    while True:
        try:
            s = socket.socket(socket.AF_UNIX)
            s.connect("s")
            return s.makefile("rwb")
        except OSError:
            time.sleep(0.05)

def load(n):
    f = connect()
    for i in range(300):
        f.write(b"set k%d_%d 0 0 4\r\nabcd\r\n" % (n, i))
        f.flush()
        assert f.readline() == b"STORED\r\n"
        f.write(b"get k%d_%d\r\n" % (n, i))
        f.flush()
        assert [f.readline() for _ in range(3)][1] == b"abcd\r\n"

threads = [threading.Thread(target=load, args=(n,)) for n in range(4)]
[t.start() for t in threads]
[t.join() for t in threads]
print("load done")
