package wire

import "strconv"

// MaxShards is how many shards a queue may have.
const MaxShards = 64

// Shard is the shard of n in which a text belongs: its FNV-1a hash of 64 bits, the upper half folded into the
// lower, modulo n. It never changes: jobs wait where it put them.
func Shard(text string, n int) int {
	if n <= 1 {
		return 0
	}
	sum := uint64(14695981039346656037)
	for i := range len(text) {
		sum = (sum ^ uint64(text[i])) * 1099511628211
	}
	return int((sum ^ sum>>32) & 0xffffffff % uint64(n))
}

// Tag is the hash tag of one shard of a queue. The first has the queue's own name, so that its keys are those
// of a queue without shards; no queue's name has the # of the others.
func Tag(queue string, shard int) string {
	if shard == 0 {
		return queue
	}
	return queue + "#" + strconv.Itoa(shard)
}
