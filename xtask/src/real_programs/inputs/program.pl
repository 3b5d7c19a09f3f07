use strict; use warnings;
open(my $in, '<', 'words.txt') or die;
my %count;
while (<$in>) { $count{$_}++ for split }
print join(",", map { "$_=$count{$_}" } (sort { $count{$b} <=> $count{$a} || $a cmp $b } keys %count)[0..3]), "\n";
pipe(my $r, my $w);
my $pid = fork();
if (!$pid) { close $r; print $w "from the child\n"; close $w; exit 6; }
close $w; print <$r>; waitpid($pid, 0); print $? >> 8, "\n";
local $SIG{USR1} = sub { print "signal\n" };
kill 'USR1', $$;
eval { die "on purpose\n" }; print "caught $@";
print `echo backticks`, sprintf("%.3f", atan2(1, 1) * 4), "\n";
exit 2;
