//! Tools: text, archives, compilers' helpers, servers with clients, programs that measure time.

use super::case::Case;

pub const CASES: &[Case] = &[
    Case::new("gpg -c", &["gpg", "gpgconf"], r#"
        export GNUPGHOME=$PWD/g; mkdir -m 700 g; gpg --batch -q --passphrase pw --pinentry-mode loopback -c -o w.gpg words.txt; echo $?
        gpg --batch -q --passphrase pw --pinentry-mode loopback -d w.gpg | cmp - words.txt; echo $?; gpgconf --kill all
    "#)
        .packages(&["gnupg"])
        .without_files(),
    Case::new("gpg key", &["gpg", "gpgconf"], r#"
        export GNUPGHOME=$PWD/g; mkdir -m 700 g; gpg --batch -q --passphrase '' --pinentry-mode loopback --quick-gen-key 'A <a@b>' ed25519 default never 2> /dev/null
        gpg --batch -q --passphrase '' --pinentry-mode loopback -s -o w.sig words.txt && gpg -q --batch -d w.sig 2> /dev/null | cmp - words.txt; echo $?; gpgconf --kill all
    "#)
        .packages(&["gnupg"])
        .without_files(),
    Case::new("openssl server", &["openssl"], r#"
        openssl req -x509 -newkey ed25519 -nodes -keyout k.pem -out c.pem -subj /CN=t 2> /dev/null
        openssl s_server -accept 127.0.0.1:43117 -key k.pem -cert c.pem -www -naccept 1 > /dev/null 2>&1 & sleep 0.5
        printf 'GET / HTTP/1.0\r\n\r\n' | openssl s_client -connect 127.0.0.1:43117 -quiet 2> /dev/null | head -1; wait
    "#)
        .real_time()
        .without_files(),
    Case::new("ssh-agent", &["ssh-agent", "ssh-add", "ssh-keygen"], r#"
        ssh-keygen -q -t ed25519 -N '' -C c -f k; eval $(ssh-agent -s) > /dev/null; ssh-add -q k; ssh-add -l | cut -d' ' -f1,3; ssh-agent -k > /dev/null
    "#)
        .packages(&["openssh-client"])
        .without_files(),
    Case::new("bash timeouts", &["bash"], r#"
        read -t 0.1 x < <(sleep 2); echo $?; sleep 0.05; coproc cat; echo hi >&${COPROC[1]}; read y <&${COPROC[0]}; echo $y; kill $COPROC_PID
    "#)
        .quick(),
    Case::new("bash traps", &["bash"], r#"
        trap 'echo usr' USR1; kill -USR1 $$; (exit 5); echo $?; set -o pipefail; false | true; echo $?
        for i in {1..50}; do echo $((i * i)); done | tail -1; printf '%s\n' "${BASH_VERSINFO[0]}" | wc -l; trap 'echo bye' EXIT
    "#)
        .quick(),
    Case::new("dash", &["dash"], "dash -c 'i=0; while [ $i -lt 3000 ]; do i=$((i+1)); done; echo $i; cat <<E\nhere $i\nE\nexit 6'; echo $?")
        .quick(),
    Case::new("dd and truncate", &["dd"], r#"
        dd if=words.txt of=o bs=1000 count=3 skip=1 conv=sync 2> /dev/null; md5sum o; truncate -s 5000 o; stat -c %s o; dd if=/dev/zero bs=1M count=4 2> /dev/null | sha1sum
    "#)
        .packages(&["coreutils"])
        .quick(),
    Case::new("checksums", &["sha256sum"], "for s in md5sum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum cksum sum; do $s words.txt; done")
        .packages(&["coreutils"])
        .quick(),
    Case::new("join and comm", &["join"], r#"
        cut -d' ' -f1 words.txt | sort -u > a; cut -d' ' -f2 words.txt | sort -u > b; comm -12 a b | wc -l; join a b | head -3; paste a b | tail -1; tsort <<< 'a b b c'
    "#)
        .packages(&["coreutils"])
        .quick(),
    Case::new("numbers", &["factor"], "seq 100000 100050 | factor | tail -3; numfmt --to=iec 123456789; seq -s, 20; echo 3 4 5 | tr ' ' '\\n' | paste -sd+ | bc")
        .packages(&["coreutils", "bc"])
        .quick(),
    Case::new("base64 and od", &["base64"], "base64 words.txt | base64 -d | cmp - words.txt; head -c 64 words.txt | od -An -tx1; base32 <<< hello")
        .packages(&["coreutils"])
        .quick(),
    Case::new("tee and split", &["tee"], "seq 1000 | tee a b | tail -1; cmp a b; csplit -s a 100 500; wc -l xx0*; tail -n 2 xx02")
        .packages(&["coreutils"])
        .quick(),
    Case::new("iconv", &["iconv"], "printf 'gr\\303\\274n\\n' | iconv -f utf8 -t latin1 | od -An -tx1; iconv -f utf8 -t utf16le words.txt | sha1sum")
        .packages(&["libc-bin"])
        .quick(),
    Case::new("getent and locale", &["getent"], "getent passwd root; locale -a | wc -l; getconf PAGE_SIZE; ldd /bin/ls | grep -c /")
        .packages(&["libc-bin"])
        .quick(),
    Case::new("gawk", &["gawk"], r#"
        gawk 'BEGIN { "echo piped" | getline x; print x; n = split("c a b", t); asort(t); print t[1], t[3]; print strtonum("0x1f"), mktime("2020 01 01 00 00 00") }
        { l[length($0)]++ } END { print length(l) }' words.txt
    "#),
    Case::new("rsync", &["rsync"], "mkdir a && cp program.* words.txt a && rsync -a --no-times a/ b/ && diff -r a b && rsync -an --stats a/ b/ | grep 'Number of files'")
        .real_time()
        .without_files(),
    Case::new("cpio", &["cpio"], "ls program.* | cpio -o --reproducible -H newc 2> /dev/null > c; cpio -t < c 2> /dev/null; mkdir d; cd d; cpio -i 2> /dev/null < ../c; ls | wc -l")
        .without_files(),
    Case::new("xmllint", &["xmllint"], "echo '<a><b n=\"1\">x</b><b n=\"2\"/></a>' > x.xml; xmllint --xpath 'count(//b)' x.xml; echo; xmllint --format x.xml; xmllint words.txt 2> /dev/null; echo $?")
        .packages(&["libxml2-utils"]),
    Case::new("xsltproc", &["xsltproc"], r#"
        echo '<a><b>1</b><b>2</b></a>' > x.xml
        echo '<x:stylesheet version="1.0" xmlns:x="http://www.w3.org/1999/XSL/Transform"><x:output method="text"/><x:template match="/"><x:value-of select="sum(//b)"/></x:template></x:stylesheet>' > s.xsl
        xsltproc s.xsl x.xml
    "#),
    Case::new("socat", &["socat"], r#"
        socat UNIX-LISTEN:s,fork EXEC:'tr a-z A-Z' & p=$!; for i in 1 2 3 4 5 6 7 8 9; do [ -S s ] && break; sleep 0.1; done; echo hello | socat -t1 - UNIX-CONNECT:s; kill $p; wait $p; echo $?
    "#)
        .real_time()
        .without_files(),
    Case::new("busybox", &["busybox"], "busybox sh -c 'busybox wc -l words.txt; busybox awk \"{n += NF} END {print n}\" words.txt; busybox md5sum words.txt; busybox seq 3 | busybox sort -r'")
        .packages(&["busybox-static"]),
    Case::new("as and ld", &["as", "ld"], r#"
        printf '.globl _start\n_start: mov $60, %%eax\nmov $42, %%edi\nsyscall\n' > a.s; as a.s -o a.o && ld a.o -o a && ./a; echo $?; nm a.o; objdump -d a | tail -3
    "#)
        .packages(&["binutils"]),
    Case::new("gcc -static", &["gcc"], "gcc -O1 -static program.c -o p && ./p; echo $?; gcc -no-pie program.c -o q && ./q; echo $?")
        .without_files(),
    Case::new("gcov", &["gcc", "gcov"], "gcc --coverage program.c -o p && ./p > /dev/null; gcov -n p-program.c | head -2")
        .without_files(),
    Case::new("cpp and gcc -E", &["cpp"], "cpp -P program.c | md5sum; gcc -M program.c | wc -w; gcc -dM -E - < /dev/null | wc -l")
        .packages(&["gcc", "cpp"]),
    Case::new("c++filt and strings", &["c++filt", "strings"], "echo _ZN3foo3barEi | c++filt; strings -n 8 /bin/ls | sort | head -3 | wc -l; readelf -h /bin/ls | grep Machine")
        .packages(&["binutils"]),
    Case::new("nasm", &["nasm", "ld"], r#"
        printf 'global _start\n_start: mov eax, 60\nmov edi, 17\nsyscall\n' > n.asm && nasm -f elf64 n.asm && ld n.o -o n && ./n; echo $?
    "#)
        .packages(&["nasm", "binutils"]),
    Case::new("gfortran", &["gfortran"], r#"
        printf 'program p\nreal(8)::s\ninteger::i\ns=0\ndo i=1,1000\ns=s+1d0/i\nend do\nprint "(f12.8)",s\nend\n' > p.f90 && gfortran -O2 p.f90 -o p && ./p
    "#)
        .without_files(),
    Case::new("openmp", &["gcc"], r#"
        printf '#include <stdio.h>\nint main(void) { long s = 0;\n#pragma omp parallel for reduction(+:s) num_threads(3)\nfor (int i = 0; i < 1000000; i++) s += i; printf("%%ld\\n", s); }\n' > o.c && gcc -O1 -fopenmp o.c -o o && ./o
    "#)
        .without_files(),
    Case::new("flock", &["flock"], "flock l sh -c 'echo held; flock -n l echo no; echo $?'; flock -w 0.1 l echo free")
        .packages(&["util-linux"]),
    Case::new("column and rev", &["column"], "head -5 words.txt | column -t; head -2 words.txt | rev; echo a | setsid -w cat")
        .packages(&["bsdextrautils", "util-linux"]),
    Case::new("msgfmt", &["msgfmt"], "printf 'msgid \"a\"\\nmsgstr \"b\"\\n' > m.po && msgfmt --no-hash -o m.mo m.po && msgunfmt m.mo | tail -2; printf 'int main(){ puts(_(\"hi\")); }' | xgettext -L C -k_ -o - - | grep msgid | tail -1")
        .packages(&["gettext"]),
    Case::new("sqlite3 csv", &["sqlite3"], r#"
        seq 3000 | awk '{print $1 "," $1 % 13}' > t.csv; sqlite3 d '.mode csv' '.import t.csv t' '.mode list' 'select c2, count(*) c from (select * from t) as x(c1, c2) group by c2 limit 2' 2> /dev/null; sqlite3 :memory: 'select sum(value) from generate_series(1, 100)'
    "#)
        .without_files(),
    Case::new("time and date", &["date"], "date -u -d @86400 +%F; date -u -d '2020-02-28 +2 days' +%F; TZ=Asia/Tokyo date -d @0 +%H; cal 2 2020 2> /dev/null | wc -l")
        .packages(&["coreutils"])
        .quick(),
];
