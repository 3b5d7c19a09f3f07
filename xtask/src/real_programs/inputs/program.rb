words = File.read("words.txt").split
puts words.tally.max_by(3) { |w, n| [n, w] }.inspect
puts 4.times.map { |n| Thread.new { words.each_slice(4).sum { |s| (s[n] || "").size } } }.map(&:value).inspect
puts `echo from a shell`, $?.exitstatus
pid = fork { exit 5 }
Process.wait pid
puts $?.exitstatus
begin; raise ArgumentError, "on purpose"; rescue => e; puts e.message; end
f = Fiber.new { Fiber.yield 1; 2 }
puts f.resume + f.resume
exit 3
