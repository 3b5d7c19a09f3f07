//! The programs, and what each is made to do in a folder that holds the files of `inputs`.

use super::case::Case;

/// All cases, from all lists.
pub fn all() -> impl Iterator<Item = &'static Case> {
    CASES.iter().chain(super::list_languages::CASES).chain(super::list_tools::CASES)
}

const CASES: &[Case] = &[
    Case::new("true", &["true"], "true; /bin/true; echo $?")
        .packages(&["coreutils"])
        .quick(),
    Case::new("exit code", &["sh"], "exit 37")
        .packages(&["dash"])
        .quick(),
    Case::new("death by signal", &["sh"], "kill -SEGV $$")
        .packages(&["dash"])
        .quick(),
    Case::new("bash", &["bash"], "bash program.sh")
        .quick(),
    Case::new("coreutils", &["sort"], r#"
        ls; wc words.txt; cut -d' ' -f1 words.txt | sort | uniq -c | sort -rn | head
        tac words.txt | md5sum; split -l 1000 words.txt part.; cat part.* | cmp - words.txt; nl words.txt | tail -1
        seq 1000 | shuf --random-source=words.txt | paste -sd+ | fold -w 60 | head -3; stat -c %s words.txt
    "#)
        .packages(&["coreutils"])
        .quick(),
    Case::new("sort --parallel", &["sort"], r#"
        sort --parallel=4 -S 200K words.txt | sha256sum
        sort -R --random-source=words.txt words.txt | head -3
    "#)
        .packages(&["coreutils"])
        .quick(),
    Case::new("gzip", &["gzip"], r#"
        gzip -9nk words.txt && gzip -dc words.txt.gz | cmp - words.txt && stat -c %s words.txt.gz
    "#)
        .quick(),
    Case::new("bzip2", &["bzip2"], r#"
        bzip2 -k words.txt && bunzip2 -c words.txt.bz2 | cmp - words.txt; bzip2 -t words.txt; echo $?
    "#),
    Case::new("xz -T2", &["xz"], r#"
        xz -T2 --block-size=65536 -k words.txt && xz -T2 -dc words.txt.xz | cmp - words.txt
        xz -l --robot words.txt.xz | head -2
    "#)
        .packages(&["xz-utils"])
        .quick(),
    Case::new("zstd -T2", &["zstd"], "zstd -q -T2 -12 words.txt && zstd -dqc words.txt.zst | cmp - words.txt"),
    Case::new("lz4", &["lz4"], "lz4 -q words.txt w.lz4 && lz4 -dqc w.lz4 | cmp - words.txt"),
    Case::new("tar", &["tar"], r#"
        mkdir d && cp words.txt program.* d && tar --mtime=@0 --sort=name --owner=0 --group=0 -czf d.tgz d
        tar -tvzf d.tgz && mkdir e && tar -xzf d.tgz -C e && diff -r d e/d && echo same
    "#)
        .real_time(),
    Case::new("zip", &["zip", "unzip"], "zip -qX w.zip program.* && unzip -Z1 w.zip | sort && unzip -tq w.zip")
        .without_files(),
    Case::new("gcc", &["gcc"], r#"
        gcc -O2 -Wall program.c -o program && ./program; echo $?
        gcc -c missing.c; gcc -O2 -S -o - program.c | tail -5
    "#)
        .quick(),
    Case::new("g++", &["g++"], "g++ -O1 -std=c++17 -pthread program.cpp -o program && ./program"),
    Case::new("binutils", &["objdump", "gcc"], r#"
        gcc -g -c program.c && objdump -d program.o | tail -3 && readelf -SW program.o | wc -l && nm program.o
        strip program.o && ar rcD l.a program.o && ar t l.a && size program.o
    "#)
        .packages(&["binutils", "gcc"]),
    Case::new("rustc", &["rustc"], "$RUSTC -O program.rs && ./program")
        .packages(&[])
        .without_files(),
    Case::new("go program", &["go"], "./program")
        .packages(&["golang-go"])
        .setup("GOCACHE=$PWD/../gocache GO111MODULE=off go build -o program program.go"),
    Case::new("git", &["git"], "bash git.sh")
        .without_files(),
    Case::new("perl", &["perl"], "perl program.pl")
        .quick(),
    Case::new("python3", &["python3"], "$PYTHON program.py")
        .without_files()
        .quick(),
    Case::new("node", &["node"], "node program.js")
        .packages(&["nodejs"]),
    Case::new("ruby", &["ruby"], "ruby program.rb"),
    Case::new("lua", &["lua5.4"], "lua5.4 program.lua"),
    Case::new("php", &["php"], "php program.php")
        .packages(&["php-cli"]),
    Case::new("tclsh", &["tclsh"], r#"
        echo 'set f [open words.txt]; puts [llength [split [read $f]]]; puts [exec echo hi]; exit 6' | tclsh
    "#)
        .packages(&["tcl"]),
    Case::new("openssl", &["openssl"], r#"
        openssl dgst -sha512 words.txt
        openssl enc -aes-256-cbc -pbkdf2 -S 0102030405060708 -k pw -in words.txt -out w.enc
        openssl enc -d -aes-256-cbc -pbkdf2 -S 0102030405060708 -k pw -in w.enc | cmp - words.txt
        openssl genpkey -algorithm ed25519 -out k.pem && openssl pkey -in k.pem -noout -text | wc -l
        openssl speed -seconds 1 -bytes 1024 sha256 > /dev/null 2>&1; echo $?
    "#)
        .real_time()
        .without_files(),
    Case::new("sqlite3", &["sqlite3"], r#"
        sqlite3 db 'pragma journal_mode=wal; create table t(a integer primary key, b text);
            with recursive c(n) as (select 1 union all select n+1 from c where n<20000) insert into t select n, hex(n*n) from c;
            create index i on t(b); select count(*), sum(length(b)) from t;'
        sqlite3 db 'pragma integrity_check; delete from t where a%2; vacuum; select count(*) from t'
    "#)
        .without_files()
        .quick(),
    Case::new("gdb --batch", &["gdb", "gcc"], r#"
        gcc -g program.c -o program
        gdb -nx --batch -ex 'print 6*7' -ex 'info line main' -ex 'ptype compare' ./program
    "#),
    Case::new("make", &["make"], "make -s; make; make -s fail; echo $?; make -sj2 -B | sort")
        .real_time()
        .quick(),
    Case::new("cmake", &["cmake", "make", "gcc"], r#"
        printf 'cmake_minimum_required(VERSION 3.5)\nproject(p C)\nadd_executable(p program.c)\n' > CMakeLists.txt
        cmake -S . -B b > /dev/null && cmake --build b > log && ./b/p
    "#)
        .real_time()
        .without_files(),
    Case::new("find", &["find"], r#"
        mkdir -p a/b/c && touch a/x a/b/y.c a/b/c/z.c && find a -name '*.c' -exec echo got {} + | tr ' ' '\n' | sort
        find . -type d | sort | xargs -n2 -P2 echo | sort
    "#)
        .packages(&["findutils"])
        .quick(),
    Case::new("awk", &["awk"], r#"
        awk '{for(i=1;i<=NF;i++)c[$i]++} END{for(w in c)print c[w],w}' words.txt | sort -rn | head -5
        awk 'BEGIN{printf "%.5f\n", sin(1); exit 3}'
    "#)
        .packages(&["mawk"])
        .quick(),
    Case::new("sed", &["sed"], r#"
        sed -n 's/\(ba\)\([a-z]*\)/\2\1/gp' words.txt | tail -3; sed -i '1,5d' words.txt; wc -l words.txt
    "#)
        .quick(),
    Case::new("grep", &["grep"], r#"
        grep -cE '(ba|ce){2}' words.txt; grep -n main program.* | sort | head
        grep -P '(?<=di)fo' words.txt | wc -l; grep nowhere words.txt; echo $?
    "#)
        .quick(),
    Case::new("diff", &["diff", "patch"], r#"
        sed 's/ba/BA/' words.txt > w2; diff words.txt w2 | md5sum; diff -u program.c program.cpp > p.diff; echo $?
        patch -s -o out program.c p.diff; cmp out program.cpp
    "#)
        .packages(&["diffutils", "patch"])
        .without_files()
        .quick(),
    Case::new("bc", &["bc"], "echo 'scale=200; 4*a(1); e(1); 2^400' | bc -l")
        .quick(),
    Case::new("curl", &["curl"], r#"
        curl -s file://$PWD/words.txt | sha256sum; curl -s file:///no/such/file; echo $?
    "#),
    Case::new("jq", &["jq"], r#"
        jq -Rs 'split("\n") | map(length) | {n: length, max: max, sum: add}' words.txt
    "#)
        .quick(),
    Case::new("m4", &["m4"], r#"
        echo 'define(`f'"'"', `ifelse($1, 0, 1, `eval($1 * f(decr($1)))'"'"')'"'"')f(8)' | m4
    "#)
        .quick(),
    Case::new("bison and flex", &["bison", "flex", "gcc"], r#"
        printf '%%%%\n[a-z]+ printf("<%%s>", yytext);\n%%%%\nint yywrap(){return 1;} int main(){return yylex();}\n' > l.l
        flex -o l.c l.l && gcc -w l.c -o l && head -2 words.txt | ./l
        printf '%%%%\ns: ;\n%%%%\n' > g.y && bison g.y && wc -l < g.tab.c
    "#)
        .packages(&["bison", "flex", "gcc"])
        .without_files(),
    Case::new("ed", &["ed"], r#"
        printf 'H\n1,3p\n2d\n$=\nw out\nq\n' | ed words.txt
    "#),
    Case::new("vim -es", &["vim"], r#"
        vim -u NONE -es -c '%s/ba/XX/g' -c 'sort u' -c 'w! out' -c 'q!' words.txt; sha256sum out
    "#)
        .without_files(),
    Case::new("file and xxd", &["file", "xxd"], r#"
        file program.* | sort; head -c 100 words.txt | xxd | xxd -r | cmp - words.txt
    "#),
    Case::new("ssh-keygen", &["ssh-keygen"], r#"
        ssh-keygen -q -t ed25519 -N '' -C c -f k && ssh-keygen -y -f k | cmp -n 80 - k.pub && ssh-keygen -l -f k.pub | cut -d' ' -f1,3
    "#)
        .packages(&["openssh-client"])
        .without_files(),
    Case::new("dpkg", &["dpkg-query"], r#"
        dpkg-query -W -f '${Package} ${Status}\n' coreutils; dpkg -S /bin/ls; dpkg-deb --version | head -1
    "#)
        .packages(&["dpkg"]),
    Case::new("timeout and kill", &["timeout"], r#"
        timeout 0.1 sleep 5; echo $?; { sleep 5 & kill $!; wait $!; echo $?; timeout -s KILL 0.1 sleep 5; echo $?; } 2> /dev/null
    "#)
        .packages(&["coreutils"])
        .real_time()
        .quick(),
    Case::new("redis-server", &["redis-server", "redis-benchmark"], "bash redis.sh")
        .packages(&["redis-server", "redis-tools"])
        .real_time()
        .without_files(),
    Case::new("memcached", &["memcached", "python3"], "bash memcached.sh")
        .real_time()
        .without_files(),
    Case::new("nginx under wrk", &["nginx", "wrk", "curl"], "bash nginx.sh")
        .packages(&["nginx-light", "wrk", "curl"])
        .real_time()
        .without_files(),
];
