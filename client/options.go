package client

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Version is what the User-Agent calls this client's version.
const Version = "0.1.0"

// Names that stand for an empty one, as in every version of Nacos.
const (
	DefaultNamespace = "public"        // of Options.Namespace
	DefaultGroup     = "DEFAULT_GROUP" // of services
	DefaultCluster   = "DEFAULT"       // of instances
)

// Options say what a Client does. Only Servers is needed; the zero value of all else is
// good. New takes a copy: what is changed afterwards has no effect. Durations below 1 ms
// are refused, since they are numbers of seconds that were meant to be durations.
type Options struct {
	// Servers are the registry's nodes: "host", "host:port" or "http(s)://host:port".
	// The port is 8848 when not given. Every one is asked in turn, from a random one on;
	// one that failed is asked last for 5 s. The list never changes by itself.
	Servers []string
	// ContextPath is before every Nacos path; "/nacos" when empty, "/" for none.
	ContextPath string
	// Namespace, by its id, of everything this client does; DefaultNamespace when empty.
	// It need not exist before.
	Namespace string

	// Username and Password log in; without a name no request carries credentials.
	// Tokens are renewed at 90 % of their life and when a server refuses one. A password
	// that is wrong is an error of each call, a *ServerError with Op "login", and is tried
	// again every 5 s at most.
	Username, Password string
	// TLS is for https servers; nil takes Go's defaults. Without effect with a Transport.
	TLS *tls.Config
	// UserAgent is put before the client's own; it names the application.
	UserAgent string

	// Timeout bounds a call over all servers and repeats, its login included; 10 s when 0.
	// A context may bound it further. AttemptTimeout bounds one request; 4 s when 0, which
	// is more than rollcall takes to say that it cannot answer.
	Timeout, AttemptTimeout time.Duration

	// BeatWorkers is how many beats may be on their way at once; 4 when 0, at most 64.
	BeatWorkers int
	// MaxInstances bounds the instances of this client, those included that wait to be
	// deregistered; 100,000 when 0. One more is an *InvalidError of Register.
	MaxInstances int

	// MaxStreams bounds the watch streams, one connection each; 256 when 0, and none when
	// negative. Services beyond are pushed to by UDP until one is free.
	MaxStreams int
	// NoPush leaves out the UDP socket, which is otherwise opened, at a free port, once a
	// service has no stream. PushIP is the address that servers push to; when empty, the
	// one from which this host reaches the server. Firewalls must let datagrams in.
	NoPush bool
	PushIP string
	// PollInterval is between two lists that are asked for without a sign of a change, or
	// up to 10 % less. When 0, it is what servers ask for in their lists, from 1 s to
	// 60 s (Nacos 1.x: 3 s, 10 s with pushes), and 20 s while a stream is open.
	PollInterval time.Duration

	// ProtectEmpty keeps the last instances of a service when a list has none that is
	// healthy, for those who would rather call the dead than nobody. Off by default, as in
	// Nacos' own clients (there it came with 1.4.1).
	ProtectEmpty bool
	// CacheDir, if not empty, keeps the newest list of each followed service on disk, as
	// CacheDir/NAMESPACE/GROUP@@SERVICE.json (with @@CLUSTERS before the dot, and odd
	// characters and dots as in a URL), and has it loaded by New, for a start while no
	// server answers. It is made when it is not there. Files are readable by their owner
	// alone, and replaced as a whole, so processes of one user may share it; each at most
	// once a second, the newest by Close. One that cannot be read counts as missing, one
	// that cannot be written is logged.
	CacheDir string
	// FailoverDir, if not empty, holds lists like those of CacheDir, written by an
	// operator. While the file FailoverDir/switch says 1 they are what is used; it is
	// looked at every FailoverInterval, 5 s when 0. Services without a file there go on as
	// before.
	FailoverDir      string
	FailoverInterval time.Duration

	// Logger gets what happens in the background, never a password or a token; nil
	// discards it. Registerer gets the metrics rollcall_client_… until Close; nil leaves
	// them unregistered. Two clients with one Registerer need
	// prometheus.WrapRegistererWith to be told apart.
	Logger     *slog.Logger
	Registerer prometheus.Registerer
	// Transport replaces the HTTP transport, TLS and all, for headers of your own, in tests
	// and behind proxies. Close closes its idle connections.
	Transport http.RoundTripper
}

func (o Options) withDefaults() Options {
	def(&o.ContextPath, "/nacos")
	o.ContextPath = strings.TrimRight("/"+strings.Trim(o.ContextPath, "/"), "/")
	def(&o.Namespace, DefaultNamespace)
	def(&o.Timeout, 10*time.Second)
	def(&o.AttemptTimeout, 4*time.Second)
	def(&o.BeatWorkers, 4)
	def(&o.MaxInstances, 100_000)
	def(&o.MaxStreams, 256)
	def(&o.FailoverInterval, 5*time.Second)
	o.UserAgent = strings.TrimSpace(o.UserAgent + " rollcall-go/" + Version)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// leastDuration tells a number that somebody took for seconds from a duration.
const (
	leastDuration = time.Millisecond
	tooShort      = "must be at least 1ms; 30*time.Second is half a minute, 30 is 30 ns"
)

func def[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

func (o Options) validate() error {
	switch {
	case len(o.Servers) == 0:
		return invalid("Servers", "", "must name at least one server")
	case o.Timeout < leastDuration:
		return invalid("Timeout", o.Timeout.String(), tooShort)
	case o.AttemptTimeout < leastDuration:
		return invalid("AttemptTimeout", o.AttemptTimeout.String(), tooShort)
	case o.PollInterval != 0 && o.PollInterval < leastDuration:
		return invalid("PollInterval", o.PollInterval.String(), tooShort)
	case o.FailoverInterval < leastDuration:
		return invalid("FailoverInterval", o.FailoverInterval.String(), tooShort)
	case o.BeatWorkers < 1 || o.BeatWorkers > 64:
		return invalid("BeatWorkers", fmt.Sprint(o.BeatWorkers), "must be from 1 to 64")
	case o.MaxInstances < 1:
		return invalid("MaxInstances", fmt.Sprint(o.MaxInstances), "must be positive")
	case o.Username == "" && o.Password != "":
		return invalid("Username", "", "must be given with a password")
	case strings.ContainsAny(o.UserAgent, "\r\n"):
		return invalid("UserAgent", o.UserAgent, "must be one line")
	}
	return nil
}

// baseURL makes "http://host:port" of what an operator writes.
func baseURL(server string) (string, error) {
	text := strings.TrimSpace(server)
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" {
		return "", invalid("Servers", server, "must be host, host:port or http(s)://host:port")
	}
	if u.Scheme != "http" && u.Scheme != "https" {
		return "", invalid("Servers", server, "scheme must be http or https")
	}
	if u.User != nil || u.RawQuery != "" || strings.Trim(u.Path, "/") != "" {
		return "", invalid("Servers", u.Host, "must have no user, path or query: see Username and ContextPath")
	}
	if u.Port() == "" {
		u.Host = u.Host + ":8848"
	}
	return u.Scheme + "://" + u.Host, nil
}
