package workloads

import "fmt"

// drawArithmetic adds two numbers from 1 to 19. The sums of a difficulty are
// shuffled and come in turn, so that a cycle holds none twice before it has had
// them all.
func drawArithmetic(seed uint64, difficulty, number int) (text, answer string) {
	var sums [][2]int
	for a := 1; a < 20; a++ {
		for b := 1; b < 20; b++ {
			grade := 1
			if a%10+b%10 >= 10 {
				grade++ // a carry
			}
			if a >= 10 || b >= 10 {
				grade += 2
			}
			if grade == difficulty {
				sums = append(sums, [2]int{a, b})
			}
		}
	}
	r := stream(seed, fmt.Sprintf("arithmetic/%d", difficulty))
	r.Shuffle(len(sums), func(i, j int) { sums[i], sums[j] = sums[j], sums[i] })
	s := sums[(number-1)/4%len(sums)] // a cycle comes to a difficulty at every fourth number at most
	return fmt.Sprintf("What is %d + %d? Answer with the number only.", s[0], s[1]), fmt.Sprint(s[0] + s[1])
}
