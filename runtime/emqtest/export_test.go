package emqtest

// Addr is where the server of an Env listens, for what its client cannot do.
func (e *Env) Addr() string { return e.redis.Addr() }
