package emq

//lint:file-ignore U1000 nobody calls these methods: they only stand in the way of others

// whole stands beside an embedded Ref, whose text would else stand for the whole struct in JSON, logs and
// %v: of two methods at one depth neither is the struct's.
type whole struct{}

func (whole) String() string               { return "" }
func (whole) MarshalText() ([]byte, error) { return nil, nil }
func (*whole) UnmarshalText([]byte) error  { return nil }
