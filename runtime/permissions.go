package emq

import (
	"context"
	"fmt"
	"strings"

	"github.com/redis/rueidis"

	"github.com/echomq/emq/internal/wire"
	"github.com/echomq/emq/runtime/scripts"
)

// needed lists every command that emq sends or its scripts call, each with arguments that a dry run
// accepts; KEY stands for a key or a channel of a queue. docs/operating.md has the same list for the ACL.
func needed() [][]string {
	var list [][]string
	for line := range strings.Lines(`
		EVAL x 1 KEY
		EVALSHA x 1 KEY
		BLPOP KEY 1
		INFO server
		TIME
		GET KEY
		SET KEY x
		DEL KEY
		UNLINK KEY
		SCAN 0
		EXISTS KEY
		PTTL KEY
		PEXPIRE KEY 1
		HGET KEY x
		HMGET KEY x
		HGETALL KEY
		HSET KEY x y
		HDEL KEY x
		HEXISTS KEY x
		HSCAN KEY 0
		HINCRBY KEY x 1
		LPUSH KEY x
		LLEN KEY
		LRANGE KEY 0 1
		LTRIM KEY 0 1
		SADD KEY x
		SREM KEY x
		SCARD KEY
		SISMEMBER KEY x
		SSCAN KEY 0
		ZADD KEY 0 x
		ZREM KEY x
		ZCARD KEY
		ZRANGE KEY 0 1
		ZRANK KEY x
		ZSCORE KEY x
		ZSCAN KEY 0
		ZREMRANGEBYRANK KEY 0 1
		PUBLISH KEY x
		SUBSCRIBE KEY
		UNSUBSCRIBE
	`) {
		if words := strings.Fields(line); len(words) > 0 {
			list = append(list, words)
		}
	}
	return list
}

// checkPermissions asks the server for each command, where it can be asked. A command that an ACL
// denies inside a script would leave the writes before it in place.
func (c *Client) checkPermissions(ctx context.Context) error {
	user, err := c.rueidis.Do(ctx, c.rueidis.B().AclWhoami().Build()).ToString()
	if err != nil {
		return refusedOrBroken("ACL WHOAMI", err)
	}
	base := wire.NewKeys(c.prefix, "x").Base()
	list := needed()
	if c.rueidis.Mode() == rueidis.ClientModeCluster {
		list = append(list, []string{"ASKING"}) // it is sent while a slot moves, when nobody thinks of it
	}
	for _, words := range list {
		args := make([]string, 0, len(words)-1)
		for _, w := range words[1:] {
			if w == "KEY" {
				w = base + "x"
			}
			args = append(args, w)
		}
		dry := c.rueidis.B().AclDryrun().Username(user).Command(words[0]).Arg(args...).Build()
		answer, err := c.rueidis.Do(ctx, dry).ToString()
		if err != nil {
			return refusedOrBroken("ACL DRYRUN", err) // the server does not have it, or this user may not ask
		}
		if answer != "OK" {
			return fmt.Errorf("%w: the server's user %s lacks %s on keys like %sx (%s)", ErrPermission, wire.Quote(user), words[0], base, answer)
		}
	}
	return nil
}

// checkClusterQuestion finds a user who may not ask a node of a cluster where the keys are: the client library
// takes the node for a server of its own, and each key of another node would be refused, for ever.
func (c *Client) checkClusterQuestion(ctx context.Context) error {
	if c.rueidis.Mode() == rueidis.ClientModeCluster {
		return nil
	}
	// the library asks for the slots; from Redis 8 and Valkey 8 on for the shards
	for _, ask := range []rueidis.Completed{c.rueidis.B().ClusterSlots().Build(), c.rueidis.B().ClusterShards().Build()} {
		name := strings.Join(ask.Commands(), " ")
		err := c.rueidis.Do(ctx, ask).Error()
		if word, _ := scripts.Word(err); word == "NOPERM" {
			return fmt.Errorf("%w: the server is a node of a cluster, and its user lacks %s, which tells where the keys are: %w", ErrPermission, name, err)
		} else if word == "" && err != nil {
			return fmt.Errorf("emq: %s: %w", name, err)
		}
	}
	return nil
}

// refusedOrBroken tells a server that cannot be asked from one that does not answer.
func refusedOrBroken(command string, err error) error {
	if _, refused := rueidis.IsRedisErr(err); refused {
		return nil
	}
	return fmt.Errorf("emq: %s: %w", command, err)
}
