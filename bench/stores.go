package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"

	"github.com/echomq/emq/internal/redistest"
)

// redisStore is a redis-server of the benchmark's own.
type redisStore struct {
	*redistest.Server
	client *redis.Client
	pid    int
}

func startRedis(dir string, args ...string) (*redisStore, error) {
	server, err := redistest.New(dir, args...)
	if err != nil {
		return nil, fmt.Errorf("redis-server (apt-get install redis-server): %w", err)
	}
	r := &redisStore{Server: server, client: redis.NewClient(&redis.Options{Addr: server.Addr()})}
	pid, err := r.info(context.Background(), "process_id")
	if err != nil {
		r.stop()
		return nil, err
	}
	r.pid = int(pid)
	return r, nil
}

func (r *redisStore) stop() {
	_ = r.client.Close() // its server is stopped next
	r.Stop()
}

// info reads a number of INFO.
func (r *redisStore) info(ctx context.Context, field string) (int64, error) {
	text, err := r.client.Info(ctx).Result()
	if err != nil {
		return 0, fmt.Errorf("redis-server: %w", err)
	}
	for line := range strings.Lines(text) {
		if k, v, ok := strings.Cut(strings.TrimSpace(line), ":"); ok && k == field {
			return strconv.ParseInt(v, 10, 64)
		}
	}
	return 0, fmt.Errorf("redis-server: INFO has no %s", field)
}

func (r *redisStore) cpu() (time.Duration, error) { return cpuOf(r.pid, false) }

func (r *redisStore) bytes(ctx context.Context) (int64, error) { return r.info(ctx, "used_memory") }

func (r *redisStore) flush(ctx context.Context) error { return r.client.FlushAll(ctx).Err() }

// postgresStore is a PostgreSQL of the benchmark's own, with its default settings.
type postgresStore struct {
	url     string
	pid     int
	process *exec.Cmd
}

// startPostgres initialises a cluster in dir and starts it. PostgreSQL refuses to run as root, so then it
// runs as the user postgres of its package.
func startPostgres(dir string) (*postgresStore, error) {
	bin, err := postgresPrograms()
	if err != nil {
		return nil, err
	}
	port, err := redistest.FreePort()
	if err != nil {
		return nil, err
	}
	attr, err := unprivileged(dir)
	if err != nil {
		return nil, err
	}
	data := filepath.Join(dir, "data")
	initdb := exec.Command(filepath.Join(bin, "initdb"), "-D", data, "-U", "postgres", "--auth=trust", "-E", "UTF8")
	initdb.SysProcAttr, initdb.Dir = attr, dir
	if out, err := initdb.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb: %w\n%s", err, out)
	}
	server := exec.Command(filepath.Join(bin, "postgres"), "-D", data, "-p", strconv.Itoa(port), "-c", "listen_addresses=127.0.0.1",
		"-c", "unix_socket_directories="+dir, "-c", "max_connections=200")
	server.SysProcAttr, server.Dir = attr, dir
	if err := server.Start(); err != nil {
		return nil, err
	}
	p := &postgresStore{fmt.Sprintf("postgres://postgres@127.0.0.1:%d/postgres", port), server.Process.Pid, server}
	for range 200 {
		if conn, err := pgx.Connect(context.Background(), p.url); err == nil {
			return p, conn.Close(context.Background())
		}
		time.Sleep(50 * time.Millisecond)
	}
	p.stop()
	return nil, errors.New("postgres does not answer")
}

func postgresPrograms() (string, error) {
	if at, err := exec.LookPath("initdb"); err == nil {
		if at, err = filepath.EvalSymlinks(at); err == nil {
			return filepath.Dir(at), nil
		}
	}
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin")
	if err != nil || len(found) == 0 {
		return "", errors.New("no initdb: apt-get install postgresql")
	}
	return found[len(found)-1], nil
}

func unprivileged(dir string) (*syscall.SysProcAttr, error) {
	attr := &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if os.Getuid() != 0 {
		return attr, nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		return nil, fmt.Errorf("PostgreSQL does not run as root: %w: apt-get install postgresql", err)
	}
	uid, _ := strconv.Atoi(u.Uid) // numbers, by the system's own file
	gid, _ := strconv.Atoi(u.Gid)
	if err := os.Chown(dir, uid, gid); err != nil {
		return nil, err
	}
	for at := dir; at != "/"; at = filepath.Dir(at) { // os.MkdirTemp lets nobody else in
		if err := os.Chmod(at, 0o711|mode(at)); err != nil {
			return nil, err
		}
		if at == os.TempDir() || filepath.Dir(at) == os.TempDir() {
			break
		}
	}
	attr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	return attr, nil
}

func mode(path string) os.FileMode {
	if st, err := os.Stat(path); err == nil {
		return st.Mode().Perm()
	}
	return 0
}

func (p *postgresStore) stop() {
	_ = p.process.Process.Signal(syscall.SIGINT) // fast shutdown; Wait says whether it worked
	_ = p.process.Wait()
}

func (p *postgresStore) cpu() (time.Duration, error) { return cpuOf(p.pid, true) }

func (p *postgresStore) bytes(ctx context.Context) (int64, error) {
	conn, err := pgx.Connect(ctx, p.url)
	if err != nil {
		return 0, err
	}
	defer conn.Close(ctx)
	var n int64
	err = conn.QueryRow(ctx, "SELECT pg_total_relation_size('river_job')").Scan(&n)
	return n, err
}

// cpuOf is the time that a process has used, with its children if they are wanted.
func cpuOf(pid int, children bool) (time.Duration, error) {
	ticks, err := ticksOf(pid, children)
	if err != nil {
		return 0, err
	}
	if children {
		stats, err := filepath.Glob("/proc/[0-9]*/stat")
		if err != nil {
			return 0, err
		}
		for _, path := range stats {
			text, err := os.ReadFile(path)
			if err != nil {
				continue // it has ended
			}
			f := fields(string(text))
			if len(f) > 3 && f[1] == strconv.Itoa(pid) {
				ticks += number(f[11]) + number(f[12])
			}
		}
	}
	return time.Duration(ticks) * (time.Second / 100), nil // USER_HZ is 100 on Linux
}

func ticksOf(pid int, reaped bool) (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	f := fields(string(text))
	if len(f) < 15 {
		return 0, errors.New("/proc/PID/stat is short")
	}
	ticks := number(f[11]) + number(f[12])
	if reaped {
		ticks += number(f[13]) + number(f[14])
	}
	return ticks, nil
}

// fields of a stat line after the program's name, which may hold spaces: state, parent, ...
func fields(stat string) []string {
	_, rest, _ := strings.Cut(stat, ") ")
	return strings.Fields(rest)
}

func number(s string) int64 {
	n, _ := strconv.ParseInt(s, 10, 64) // by the kernel
	return n
}
