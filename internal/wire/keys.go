package wire

// Keys names the keys of one queue. All of them share the hash tag {queue}, so a script that takes
// any of them is legal on a cluster.
type Keys struct{ base string }

// NewKeys names the keys of a queue, or of one shard by its Tag, under a deployment prefix; the empty prefix is
// none. Both names must have passed their checks.
func NewKeys(prefix, tag string) Keys {
	return Keys{withPrefix(prefix, "emq:{"+tag+"}:")}
}

// VersionKey is the key of the version fence of a deployment.
func VersionKey(prefix string) string { return withPrefix(prefix, "{emq}:version") }

func withPrefix(prefix, key string) string {
	if prefix == "" {
		return key
	}
	return prefix + ":" + key
}

// Base is what every key of the queue begins with; scripts append the rest.
func (k Keys) Base() string { return k.base }

// Fixed is a key that every queue has at most one of: "pending", "active", "meta", …
func (k Keys) Fixed(name string) string { return k.base + name }

// Row is the hash of one job.
func (k Keys) Row(id string) string { return k.base + "job:" + id }

// Unique is the key that a job holds while it is the only one.
func (k Keys) Unique(key string) string { return k.base + "de:" + key }

// Entry is the hash of one cron entry.
func (k Keys) Entry(name string) string { return k.base + "repeat:" + name }
