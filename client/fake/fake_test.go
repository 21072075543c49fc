package fake

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const naming = "/nacos/v1/ns/instance"

// caller speaks to a fake server as a client does that knows the protocol alone.
type caller struct {
	*testing.T
	*Server
	http   http.Client
	header http.Header
}

func start(t *testing.T) *caller {
	t.Helper()
	s, err := Start()
	if err != nil {
		t.Fatal(err)
	}
	c := &caller{T: t, Server: s, http: http.Client{Transport: &http.Transport{}, Timeout: 10 * time.Second}, header: http.Header{}}
	t.Cleanup(func() {
		c.http.CloseIdleConnections()
		if err := s.Stop(); err != nil && !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
	})
	return c
}

// call makes a request with parameters "k=v&k=v" and returns status, body and header.
func (c *caller) call(method, path, params string) (int, string, http.Header) {
	c.Helper()
	req, err := http.NewRequest(method, c.URL()+path+"?"+params, nil)
	if err != nil {
		c.Fatal(err)
	}
	req.Header = c.header
	resp, err := c.http.Do(req)
	if err != nil {
		c.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		c.Fatal(err)
	}
	return resp.StatusCode, string(body), resp.Header
}

// must is call for what has to succeed, with the body decoded.
func (c *caller) must(method, path, params string) (answer map[string]any) {
	c.Helper()
	status, body, _ := c.call(method, path, params)
	if status != http.StatusOK {
		c.Fatalf("%s %s?%s: %d %s", method, path, params, status, body)
	}
	_ = json.Unmarshal([]byte(body), &answer) // `ok` is no JSON
	return answer
}

// ports are those that a list shows.
func (c *caller) ports(params string) string {
	c.Helper()
	var ports []string
	for _, h := range c.must(http.MethodGet, naming+"/list", params)["hosts"].([]any) {
		ports = append(ports, strconv.Itoa(int(h.(map[string]any)["port"].(float64))))
	}
	return strings.Join(ports, " ")
}

var orders = Instance{Service: "orders", IP: "10.0.0.1", Port: 80, Weight: 1, Enabled: true, Healthy: true, Ephemeral: true}

func TestLists_ShowWhatIsEnabledInTheClustersAskedFor(t *testing.T) {
	c := start(t)
	c.must(http.MethodPost, naming, "serviceName=DEFAULT_GROUP@@orders&ip=10.0.0.1&port=80&weight=2.5&metadata="+url.QueryEscape(`{"zone":"a"}`))
	c.must(http.MethodPost, naming, "serviceName=orders&ip=10.0.0.1&port=81&clusterName=east&ephemeral=false")
	c.must(http.MethodPost, naming, "serviceName=orders&ip=10.0.0.1&port=82&enabled=false")
	c.Put(Instance{Service: "other@@orders", IP: "10.0.0.1", Port: 90, Enabled: true})
	for params, want := range map[string]string{
		"serviceName=orders": "80 81", "serviceName=orders&clusters=east": "81", "serviceName=orders&clusters=DEFAULT,west": "80",
		"serviceName=other@@orders": "90", "serviceName=none": "",
	} {
		if got := c.ports(params); got != want {
			t.Errorf("%s: ports %q, want %q", params, got, want)
		}
	}
	all := c.Instances("orders")
	if len(all) != 3 || all[0].Metadata["zone"] != "a" || all[0].Weight != 2.5 || !all[0].Ephemeral || all[1].Enabled || all[2].Ephemeral {
		t.Errorf("kept %+v", all)
	}
	if got := c.must(http.MethodGet, "/nacos/v1/ns/service/list", "pageNo=1&pageSize=10")["count"]; got != 1.0 {
		t.Errorf("%v services of the default group, want 1", got)
	}
	c.must(http.MethodDelete, naming, "serviceName=orders&ip=10.0.0.1&port=80")
	if got := c.ports("serviceName=orders"); got != "81" {
		t.Errorf("after one left: %q", got)
	}
}

func TestBadParameters_AreRefusedAndChangeNothing(t *testing.T) {
	c := start(t)
	for _, params := range []string{
		"", "serviceName=orders&ip=10.0.0.1", "serviceName=orders&port=80", "ip=10.0.0.1&port=80", "serviceName=orders&ip=10.0.0.1&port=x",
		"serviceName=orders&ip=10.0.0.1&port=80&weight=heavy", "serviceName=orders&ip=10.0.0.1&port=80&metadata=zone",
	} {
		if status, body, _ := c.call(http.MethodPost, naming, params); status != http.StatusBadRequest || body == "" {
			t.Errorf("%q: %d %q", params, status, body)
		}
	}
	if got := c.Instances("orders"); got != nil {
		t.Errorf("kept %+v", got)
	}
}

func TestBeats_RegisterWithDataAndAskForItWithout(t *testing.T) {
	c := start(t)
	light := "serviceName=orders&ip=10.0.0.1&port=80"
	if got := c.must(http.MethodPut, naming+"/beat", light)["code"]; got != 20404.0 {
		t.Errorf("light beat of nobody: code %v", got)
	}
	full := light + "&beat=" + url.QueryEscape(`{"ip":"10.0.0.1","port":80,"weight":3,"metadata":{"zone":"b"}}`)
	c.BeatInterval(700 * time.Millisecond)
	answer := c.must(http.MethodPut, naming+"/beat", full)
	if answer["code"] != 10200.0 || answer["clientBeatInterval"] != 700.0 || answer["lightBeatEnabled"] != true {
		t.Errorf("full beat: %v", answer)
	}
	if got := c.Instances("orders"); len(got) != 1 || got[0].Weight != 3 || got[0].Metadata["zone"] != "b" {
		t.Errorf("kept %+v", got)
	}
	c.LightBeats(false)
	if answer := c.must(http.MethodPut, naming+"/beat", light); answer["code"] != 10200.0 || answer["lightBeatEnabled"] != false {
		t.Errorf("light beat: %v", answer)
	}
	if status, _, _ := c.call(http.MethodPut, naming+"/beat", "serviceName=none&ip=10.0.0.1&port=80&beat={"); status != http.StatusBadRequest {
		t.Errorf("a beat that is cut off: %d", status)
	}
	if got := c.Beats(); got != 4 {
		t.Errorf("%d beats counted, want 4", got)
	}
	if got := c.Requests("PUT " + naming + "/beat"); got != 4 {
		t.Errorf("%d requests counted, want 4", got)
	}
}

func TestExpire_TakesTheSilentThatLiveByBeats(t *testing.T) {
	c := start(t)
	lasting := orders
	lasting.Port, lasting.Ephemeral = 81, false
	c.Put(orders)
	c.Put(lasting)
	if n, removed := c.Silent(time.Hour), c.Expire(time.Hour); n != 0 || removed != 0 {
		t.Errorf("within their time: %d silent, %d removed", n, removed)
	}
	if n, removed := c.Silent(-1), c.Expire(-1); n != 1 || removed != 1 {
		t.Errorf("later: %d silent, %d removed, want the ephemeral one", n, removed)
	}
	if got := c.ports("serviceName=orders"); got != "81" {
		t.Errorf("left: %q", got)
	}
	if c.Remove(orders) || !c.Remove(lasting) {
		t.Error("what is there can be removed, what is gone cannot")
	}
	c.Put(orders)
	c.Forget()
	if got := c.Instances("orders"); got != nil {
		t.Errorf("after it forgot all: %+v", got)
	}
}

func TestFail_AnswersEverythingWithTheStatus(t *testing.T) {
	c := start(t)
	c.Fail(http.StatusServiceUnavailable)
	for _, path := range []string{naming + "/list", "/nacos/v1/ns/operator/metrics", "/api/v1/watch"} {
		if status, _, _ := c.call(http.MethodGet, path, "serviceName=orders"); status != http.StatusServiceUnavailable {
			t.Errorf("%s: %d", path, status)
		}
	}
	c.Fail(0)
	if got := c.must(http.MethodGet, "/nacos/v1/ns/operator/metrics", "")["status"]; got != "UP" {
		t.Errorf("afterwards: %v", got)
	}
}

func TestLogin_AsksForTheTokenOfTheAccount(t *testing.T) {
	c := start(t)
	c.Login("nacos", "first")
	if status, _, _ := c.call(http.MethodGet, naming+"/list", "serviceName=orders"); status != http.StatusForbidden {
		t.Errorf("without a token: %d", status)
	}
	const login = "/nacos/v1/auth/users/login"
	if status, _, _ := c.call(http.MethodPost, login, "username=nacos&password=wrong"); status != http.StatusForbidden {
		t.Errorf("wrong password: %d", status)
	}
	c.header.Set("Authorization", "Bearer "+c.must(http.MethodPost, login, "username=nacos&password=first")["accessToken"].(string))
	c.ports("serviceName=orders")
	c.Login("nacos", "second")
	if status, _, _ := c.call(http.MethodGet, naming+"/list", "serviceName=orders"); status != http.StatusForbidden {
		t.Errorf("with the token of before: %d", status)
	}
	c.Login("", "")
	c.ports("serviceName=orders")
}

func TestPause_KeepsAddressAndInstances(t *testing.T) {
	c := start(t)
	c.Put(orders)
	before := c.URL()
	c.Pause()
	if resp, err := c.http.Get(before + naming + "/list?serviceName=orders"); err == nil {
		resp.Body.Close()
		t.Errorf("answered %d while it is paused", resp.StatusCode)
	}
	for range 2 {
		if err := c.Restart(); err != nil {
			t.Fatal(err)
		}
	}
	if got := c.ports("serviceName=orders"); got != "80" || c.URL() != before {
		t.Errorf("ports %q at %s, before %s", got, c.URL(), before)
	}
	if err := c.Stop(); err != nil {
		t.Error(err)
	}
	if err := c.Stop(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("second stop: %v", err)
	}
}

func TestWatch_TellsOfChangesAndAPlainServerHasNone(t *testing.T) {
	c := start(t)
	resp, err := c.http.Get(c.URL() + "/api/v1/watch?group=DEFAULT_GROUP&service=orders")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	for want := 1; want <= 2; want++ {
		c.Put(orders)
		for lines.Scan() && !strings.HasPrefix(lines.Text(), "id: ") {
		}
		if got := lines.Text(); got != "id: "+strconv.Itoa(want) {
			t.Fatalf("change %d came as %q: %v", want, got, lines.Err())
		}
	}
	c.Plain(true)
	if status, _, header := c.call(http.MethodGet, "/api/v1/watch", "group=DEFAULT_GROUP&service=orders"); status != http.StatusNotFound || header.Get("X-Rollcall-Index") != "" {
		t.Errorf("a plain server's watch: %d, index %q", status, header.Get("X-Rollcall-Index"))
	}
}

func TestPush_GoesToThoseWhoAskedForIt(t *testing.T) {
	c := start(t)
	mine, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer mine.Close()
	port := mine.LocalAddr().(*net.UDPAddr).Port
	c.header.Set("User-Agent", "Nacos-Test")
	c.must(http.MethodGet, naming+"/list", "serviceName=orders&clientIP=127.0.0.1&udpPort="+strconv.Itoa(port))
	c.Put(orders)
	if err := mine.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	packet := make([]byte, 64<<10)
	n, _, err := mine.ReadFromUDP(packet)
	if err != nil {
		t.Fatal(err)
	}
	var push struct{ Type, Data string }
	if err := json.Unmarshal(packet[:n], &push); err != nil || push.Type != "dom" || !strings.Contains(push.Data, "DEFAULT_GROUP@@orders") {
		t.Errorf("pushed %s: %v", packet[:n], err)
	}
}
