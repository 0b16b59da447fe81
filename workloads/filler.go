package workloads

import (
	"fmt"
	"math/rand/v2"
)

// The filler's vocabulary: common words, most of them one token in any
// tokenizer, and none of a place or a code, nor any digit.
var (
	things = []string{
		"table", "window", "paper", "basket", "ladder", "blanket", "bottle", "candle", "mirror", "hammer",
		"pencil", "carpet", "bucket", "kettle", "pillow", "ribbon", "button", "needle", "barrel", "saddle",
		"lantern", "wagon", "bench", "drum", "shirt", "coat", "chair", "lamp", "rope", "plate",
	}
	looks = []string{"new", "small", "large", "green", "brown", "heavy", "light", "broken", "clean", "plain", "round"}
	folk  = []string{"baker", "teacher", "farmer", "painter", "sailor", "tailor", "singer", "driver", "doctor", "neighbour"}
	deeds = []string{"carried", "painted", "repaired", "moved", "washed", "found", "sold", "bought", "lifted", "dropped"}
	where = []string{"near the door", "under the stairs", "beside the wall", "in the yard", "behind the house", "on the shelf", "by the road", "at the corner"}
	when  = []string{"in the morning", "after lunch", "before dark", "in the evening", "last week", "that day", "in the rain", "at noon"}
)

// sentence draws one sentence that says nothing about codes.
func sentence(r *rand.Rand) string {
	switch r.IntN(3) {
	case 0:
		return fmt.Sprintf("The %s %s the %s %s %s.", pick(r, folk), pick(r, deeds), pick(r, looks), pick(r, things), pick(r, when))
	case 1:
		return fmt.Sprintf("There was a %s %s %s.", pick(r, looks), pick(r, things), pick(r, where))
	}
	return fmt.Sprintf("The %s %s a %s and a %s %s.", pick(r, folk), pick(r, deeds), pick(r, things), pick(r, things), pick(r, where))
}

// sentenceTokens is about what a sentence has, before any was counted.
const sentenceTokens = 12

// closing is the last sentence, which takes as many words as are missing.
func closing(words []string) string {
	text := "It was a fine"
	for _, w := range words {
		text += " " + w
	}
	return text + " day."
}

// units are the closing sentence's words. They differ in length, so that
// tokenizers that count pieces or bytes find a sum that fits as well.
var units = []string{"calm", "dry", "quiet"}
