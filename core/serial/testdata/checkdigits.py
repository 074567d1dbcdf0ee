# Writes checkdigits.txt: texts with the check digits that python-stdnum gives them.
# On Debian: apt install python3-stdnum; python3 checkdigits.py > checkdigits.txt
import random

import stdnum
from stdnum import luhn
from stdnum.iso7064 import mod_11_10, mod_97_10

random.seed(1)
print('# text, Luhn, MOD 11,10, MOD 97-10 by python-stdnum', stdnum.__version__)
for n in range(1000):
    text = ''.join(random.choice('0123456789') for _ in range(random.randint(1, 30)))
    print(text, luhn.calc_check_digit(text), mod_11_10.calc_check_digit(text), mod_97_10.calc_check_digits(text))
for n in range(500):  # with letters, MOD 97-10 alone
    text = ''.join(random.choice('0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ') for _ in range(random.randint(1, 30)))
    print(text, '-', '-', mod_97_10.calc_check_digits(text))
