"""What every room stands on: trees, random numbers, arrays, devices, sentences for bad input."""
