"""An interpreter's work: dictionaries, strings, objects, exceptions. argv[1]: rounds."""
import sys


class Account:
    def __init__(self, number):
        self.number, self.balance = number, 0

    def book(self, amount):
        if self.balance + amount < 0:
            raise ValueError(self.number)
        self.balance += amount


def main(rounds):
    total = 0
    for r in range(rounds):
        accounts = {n: Account(n) for n in range(500)}
        for n in range(5000):
            try:
                accounts[n * 7 % 500].book((n * 31 + r) % 200 - 80)
            except ValueError:
                total += 1
        words = " ".join(str(a.balance) for a in accounts.values()).split()
        total += sum(len(w) for w in sorted(words))
    print(total)


main(int(sys.argv[1]))
