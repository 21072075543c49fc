package probe

import (
	"bytes"
	"crypto/sha1"
	"encoding/binary"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
)

// fakeMySQL speaks as much of the client/server protocol as a probe sees: greeting, login
// with mysql_native_password, one command.
type fakeMySQL struct {
	listener       net.Listener
	user, password string
	// mute stops talking before the greeting, answer makes the packets that answer a
	// command.
	mute   bool
	answer func(command string) [][]byte

	wg sync.WaitGroup
}

var nonce = []byte("0123456789abcdefghij")

func startFakeMySQL(t *testing.T, f *fakeMySQL) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f.listener = listener
	f.wg.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			f.wg.Go(func() { f.serve(conn) })
		}
	})
	t.Cleanup(func() { listener.Close(); f.wg.Wait() })
	return listener.Addr().String()
}

// serve handles one connection until the client leaves.
func (f *fakeMySQL) serve(conn net.Conn) {
	defer conn.Close()
	if f.mute {
		_, _ = io.Copy(io.Discard, conn)
		return
	}
	if write(conn, 0, greeting()) != nil {
		return
	}
	login, err := read(conn)
	if err != nil {
		return
	}
	if !f.knows(login) {
		_ = write(conn, 2, failed(1045, "Access denied"))
		return
	}
	if write(conn, 2, done) != nil {
		return
	}
	for {
		command, err := read(conn)
		if err != nil || len(command) == 0 || command[0] != 3 { // COM_QUERY
			return
		}
		for i, packet := range f.answer(string(command[1:])) {
			if write(conn, byte(i+1), packet) != nil {
				return
			}
		}
	}
}

// knows checks user and scrambled password of a login.
func (f *fakeMySQL) knows(login []byte) bool {
	user, rest, found := bytes.Cut(login[32:], []byte{0})
	if !found || string(user) != f.user || len(rest) < 1 || len(rest) < 1+int(rest[0]) {
		return false
	}
	got := rest[1 : 1+int(rest[0])]
	once := sha1.Sum([]byte(f.password))
	twice := sha1.Sum(once[:])
	salted := sha1.Sum(append(bytes.Clone(nonce), twice[:]...))
	want := make([]byte, len(once))
	for i := range want {
		want[i] = once[i] ^ salted[i]
	}
	return bytes.Equal(got, want)
}

func read(r io.Reader) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	body := make([]byte, int(head[0])|int(head[1])<<8|int(head[2])<<16)
	_, err := io.ReadFull(r, body)
	return body, err
}

func write(w io.Writer, sequence byte, body []byte) error {
	head := []byte{byte(len(body)), byte(len(body) >> 8), byte(len(body) >> 16), sequence}
	_, err := w.Write(append(head, body...))
	return err
}

// greeting is the first packet, protocol 10.
func greeting() []byte {
	const capabilities = 1 | 1<<3 | 1<<9 | 1<<15 | 1<<19 // long password, with db, 4.1, secure connection, plugin auth
	b := append([]byte{10}, "8.0.0-fake\x00"...)
	b = append(b, 1, 0, 0, 0)
	b = append(append(b, nonce[:8]...), 0)
	b = binary.LittleEndian.AppendUint16(b, capabilities&0xffff)
	b = append(b, 45, 2, 0)
	b = binary.LittleEndian.AppendUint16(b, capabilities>>16)
	b = append(append(b, byte(len(nonce)+1)), make([]byte, 10)...)
	b = append(append(b, nonce[8:]...), 0)
	return append(b, "mysql_native_password\x00"...)
}

var (
	done = []byte{0, 0, 0, 2, 0, 0, 0}
	eof  = []byte{0xfe, 0, 0, 2, 0}
)

func failed(code uint16, text string) []byte {
	return append(binary.LittleEndian.AppendUint16([]byte{0xff}, code), "#HY000"+text...)
}

// table is a result of one row.
func table(names string, values ...string) [][]byte {
	columns := strings.Split(names, ",")
	packets := [][]byte{{byte(len(columns))}}
	for _, name := range columns {
		column := []byte("\x03def\x00\x00\x00")
		column = append(append(column, byte(len(name))), name...)
		column = append(column, 0, 12, 45, 0, 255, 0, 0, 0, 253, 0, 0, 0, 0, 0)
		packets = append(packets, column)
	}
	var row []byte
	for _, value := range values {
		row = append(append(row, byte(len(value))), value...)
	}
	return append(packets, eof, row, eof)
}
