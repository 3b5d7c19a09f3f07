local n, longest = 0, ""
for line in io.lines("words.txt") do n = n + 1; if #line > #longest then longest = line end end
print(n, #longest)
local co = coroutine.wrap(function() for i = 1, 3 do coroutine.yield(i * i) end end)
print(co(), co(), co())
print(pcall(function() error("on purpose", 0) end))
print(string.format("%.4f", math.pi), ("x"):rep(5), (os.execute("exit 3")))
os.exit(8)
