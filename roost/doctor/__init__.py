"""What keeps an install of Roost from doing its work, found from outside: what is there, what
answers, what is done.
"""
