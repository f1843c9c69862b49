echo yes > answer.txt
