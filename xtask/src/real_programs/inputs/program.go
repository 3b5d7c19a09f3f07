package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"sort"
	"strings"
	"sync"
)

func main() {
	data, err := os.ReadFile("words.txt")
	if err != nil {
		panic(err)
	}
	lines := strings.Split(string(data), "\n")
	results := make([]string, 8)
	var wait sync.WaitGroup
	for n := range results {
		wait.Add(1)
		go func(n int) {
			defer wait.Done()
			hash := sha256.New()
			for i := n; i < len(lines); i += len(results) {
				hash.Write([]byte(lines[i]))
			}
			results[n] = fmt.Sprintf("%x", hash.Sum(nil))[:16]
		}(n)
	}
	wait.Wait()
	sort.Strings(results)
	fmt.Println(strings.Join(results, " "))
	channel := make(chan int)
	go func() {
		for i := 0; i < 1000; i++ {
			channel <- i
		}
		close(channel)
	}()
	sum := 0
	for i := range channel {
		sum += i
	}
	defer func() { fmt.Println("recovered:", recover()); os.Exit(7) }()
	var nothing *[]int
	fmt.Println(sum, len(*nothing))
}
