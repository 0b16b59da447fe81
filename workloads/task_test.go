package workloads_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"assay/workloads"
)

// cycle draws a cycle or fails.
func cycle(t *testing.T, family string, n int, seed uint64) []workloads.Task {
	t.Helper()
	tasks, err := workloads.Cycle(family, n, seed)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return tasks
}

// Records carry the ids, and whoever verifies a bundle draws the tasks again:
// what a seed gives must never change.
func TestACycleIsPinned(t *testing.T) {
	for family, want := range map[string]string{
		"retrieval":  "35eb46a40535ff25e550241058ded2cd1431b65dbe6d3be477a9bd446705f650",
		"arithmetic": "207dc9ed9b3bcdb9d5d274d9701a0e26f4f81e996d8dd96d11c8a6653cac71d4",
		"copy":       "b660cb2d296d49649bdfc0a0bf4a2a49410fd736245fe512bc6a1715b8c93b02",
		"json":       "8ee070704242afeab40fe5f4db85ec68e5cb2bbc8301d2f182282e8492ec4b0d",
		"mixed":      "8592bb335b3af2a48781f0035ef13b4bbe86d396c765d43b5ce9158e7f680b20",
	} {
		t.Run(family, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(workloads.TasksDigest(cycle(t, family, 12, 1))).To(Equal(want))
			g.Expect(workloads.TasksDigest(cycle(t, family, 12, 2))).NotTo(Equal(want), "the seed counts")
		})
	}
	NewWithT(t).Expect(workloads.Families()).To(ConsistOf("retrieval", "arithmetic", "copy", "json", "mixed"))
}

func TestALongerCycleBeginsWithAShorterOne(t *testing.T) {
	for _, family := range workloads.Families() {
		NewWithT(t).Expect(cycle(t, family, 48, 7)[:12]).To(Equal(cycle(t, family, 12, 7)), family)
	}
}

func TestDifficultiesComeInTurn(t *testing.T) {
	g := NewWithT(t)
	for family, want := range map[string][]int{
		"retrieval": {2, 4, 8, 16}, "arithmetic": {1, 2, 3, 4}, "copy": {1, 2, 3, 4}, "json": {2, 3, 4, 5},
	} {
		for i, task := range cycle(t, family, 12, 3) {
			g.Expect(task.Family).To(Equal(family))
			g.Expect(task.Difficulty).To(Equal(want[i%4]), task.ID)
			g.Expect(task.ID).To(Equal(fmt.Sprintf("%s/%d/%d", family, want[i%4], i+1)))
		}
	}
}

func TestAMixedCycleMeetsEachFamilyAtEachDifficulty(t *testing.T) {
	g := NewWithT(t)
	tasks := cycle(t, "mixed", 16, 3)
	seen := map[string]bool{}
	for i, task := range tasks {
		g.Expect(task.Family).To(Equal(workloads.Families()[i%4]))
		seen[fmt.Sprint(task.Family, task.Difficulty)] = true
	}
	g.Expect(seen).To(HaveLen(16))
	// It asks what the family's own cycle asks at the same number and
	// difficulty: an id and a seed are one task.
	g.Expect(tasks[0]).To(Equal(cycle(t, "retrieval", 1, 3)[0]))
}

func TestOrdinalsGoRoundTheCycle(t *testing.T) {
	g := NewWithT(t)
	tasks := cycle(t, "retrieval", 12, 1)
	for ordinal, want := range map[int]int{1: 0, 12: 11, 13: 0, 144: 11} {
		g.Expect(workloads.Of(tasks, ordinal)).To(Equal(tasks[want]), "ordinal %d", ordinal)
	}
}

func TestNoTwoTasksOfACycleAskTheSame(t *testing.T) {
	for _, family := range workloads.Families() {
		for seed := range uint64(50) {
			texts := map[string]string{}
			for _, task := range cycle(t, family, 24, seed) {
				NewWithT(t).Expect(texts).NotTo(HaveKey(task.Text), "seed %d: %s asks the same", seed, task.ID)
				texts[task.Text] = task.ID
			}
		}
	}
}

func TestACycleThatCanNotBeDrawnSaysWhy(t *testing.T) {
	g := NewWithT(t)
	_, err := workloads.Cycle("riddles", 12, 1)
	g.Expect(err).To(MatchError(And(ContainSubstring(`"riddles"`), ContainSubstring("retrieval, arithmetic, copy, json, mixed"))))
	for _, n := range []int{0, -3} {
		_, err = workloads.Cycle("mixed", n, 1)
		g.Expect(err).To(MatchError(ContainSubstring(fmt.Sprintf("a cycle of %d tasks", n))))
	}
}

var digits = regexp.MustCompile(`\d+`)

func TestACodeStandsOnceInItsContext(t *testing.T) {
	g := NewWithT(t)
	question := regexp.MustCompile(`What is the code of the ([a-z]+ [a-z]+)\?`)
	for seed := range uint64(200) {
		for _, task := range cycle(t, "retrieval", 12, seed) {
			codes := digits.FindAllString(task.Text, -1)
			g.Expect(codes).To(HaveLen(task.Difficulty), task.Text)
			g.Expect(codes).To(HaveEach(MatchRegexp(`^[1-9]\d{3}$`)))
			slices.Sort(codes)
			g.Expect(slices.Compact(codes)).To(HaveLen(task.Difficulty), "all differ")
			g.Expect(strings.Count(task.Text, task.Answer)).To(Equal(1))
			asked := question.FindStringSubmatch(task.Text)
			g.Expect(asked).NotTo(BeNil(), task.Text)
			g.Expect(strings.Count(task.Text, asked[1])).To(Equal(2), "in its sentence and in the question")
			g.Expect(task.Text).To(ContainSubstring("The code of the " + asked[1] + " is " + task.Answer + "."))
			g.Expect(len(task.Text)).To(BeNumerically("<", 1200), "about 400 tokens, digit by digit")
		}
	}
}

// Wherever the answer stood, a model that always gives the first code, say,
// would pass.
func TestTheCodeAskedStandsAnywhere(t *testing.T) {
	g := NewWithT(t)
	places := map[int]int{}
	for seed := range uint64(400) {
		task := cycle(t, "retrieval", 2, seed)[1]
		places[slices.Index(digits.FindAllString(task.Text, -1), task.Answer)]++
	}
	for place := range 4 {
		g.Expect(places[place]).To(BeNumerically("~", 100, 40), "place %d of %v", place, places)
	}
}

func TestSumsAreGradedAndRight(t *testing.T) {
	g := NewWithT(t)
	for seed := range uint64(50) {
		for _, task := range cycle(t, "arithmetic", 12, seed) {
			var a, b int
			_, err := fmt.Sscanf(task.Text, "What is %d + %d? Answer with the number only.", &a, &b)
			g.Expect(err).NotTo(HaveOccurred(), task.Text)
			g.Expect([]int{a, b}).To(HaveEach(And(BeNumerically(">", 0), BeNumerically("<", 20))))
			g.Expect(task.Answer).To(Equal(fmt.Sprint(a + b)))
			g.Expect(task.Difficulty >= 3).To(Equal(a >= 10 || b >= 10), task.ID)
			g.Expect(task.Difficulty%2 == 0).To(Equal((a+b)%10 < a%10), task.ID+": a carry")
		}
	}
}

func TestALineToCopyStandsOnce(t *testing.T) {
	g := NewWithT(t)
	for _, task := range cycle(t, "copy", 48, 5) {
		g.Expect(strings.Count(task.Text, task.Answer)).To(Equal(1))
		g.Expect(strings.Count(task.Answer, ".")).To(Equal(task.Difficulty))
		g.Expect(task.Text).To(HaveSuffix("\n" + task.Answer))
	}
}

func TestAnObjectHasTheFieldsThatAreAsked(t *testing.T) {
	g := NewWithT(t)
	for _, task := range cycle(t, "json", 48, 5) {
		list := strings.TrimSuffix(strings.TrimPrefix(task.Text, "Write a JSON object with these fields: "), ". Answer with the JSON only.")
		var members []string
		for field := range strings.SplitSeq(list, ", ") {
			name, value, ok := strings.Cut(field, " is ")
			g.Expect(ok).To(BeTrue(), field)
			members = append(members, `"`+name+`": `+value)
		}
		g.Expect(members).To(HaveLen(task.Difficulty))
		g.Expect(task.Answer).To(MatchJSON("{" + strings.Join(members, ",") + "}"))
	}
}

// What answers a task is right, and what answers another is not.
func TestATasksOwnAnswerIsRight(t *testing.T) {
	g := NewWithT(t)
	for _, family := range workloads.Families() {
		tasks := cycle(t, family, 24, 9)
		for i, task := range tasks {
			correct, why := task.Evaluate(task.Answer)
			g.Expect(correct).To(BeTrue(), "%s: %s", task.ID, why)
			g.Expect(why).To(BeEmpty())
			for j, other := range tasks {
				if other.Answer != task.Answer {
					correct, why = task.Evaluate(other.Answer)
					g.Expect(correct).To(BeFalse(), "%s, answered as %s", task.ID, tasks[j].ID)
					g.Expect(why).NotTo(BeEmpty(), "%d", i)
				}
			}
		}
	}
}

func TestADigestTellsTasksApart(t *testing.T) {
	g := NewWithT(t)
	of := func(id, text, evaluator, answer string) string {
		return workloads.Task{ID: id, Text: text, Evaluator: evaluator, Answer: answer}.Digest()
	}
	// SHA-256 of "1:a2:bc5:exact1:d", worked out with sha256sum.
	g.Expect(of("a", "bc", "exact", "d")).To(Equal("1c9298bb990d9dee056f3b4eebde0789e512761f81eca32560fb861772613042"))
	digests := []string{
		of("a", "bc", "exact", "d"), of("ab", "c", "exact", "d"), of("a", "bc", "exac", "td"), of("a", "bc", "exact", "e"), of("a", "b", "exact", "d"),
		of("a", "b2:c", "exact", "d"),
	}
	slices.Sort(digests)
	g.Expect(slices.Compact(digests)).To(HaveLen(6))
	tasks := cycle(t, "copy", 2, 1)
	g.Expect(workloads.TasksDigest(tasks)).NotTo(Equal(workloads.TasksDigest([]workloads.Task{tasks[1], tasks[0]})), "the order counts")
}

func ExampleCycle() {
	tasks, err := workloads.Cycle("mixed", 12, 20261201)
	if err != nil {
		panic(err)
	}
	task := workloads.Of(tasks, 14) // the second time round
	fmt.Println(task.ID)
	fmt.Println(task.Text)
	for _, output := range []string{"The answer is " + task.Answer + ".", "The answer is 1" + task.Answer + "."} {
		if correct, why := task.Evaluate(output); correct {
			fmt.Println("right")
		} else {
			fmt.Println("wrong:", why)
		}
	}
	// Output:
	// arithmetic/2/2
	// What is 7 + 9? Answer with the number only.
	// right
	// wrong: the last number is "116", want "16"
}
