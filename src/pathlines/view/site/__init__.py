"""What serves the pages: states with an address, answers, the guard, and the elements that pages are made of."""
