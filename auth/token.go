package auth

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"strings"

	"github.com/rollcall-io/rollcall/registry"
)

// header is that of every token. A token with another one was not made here, so that no
// caller chooses how it is checked.
var header = encode([]byte(`{"alg":"HS256"}`))

// maxToken bounds a token that is looked at, in bytes.
const maxToken = 4 << 10

// claims are what a token says: the user, when it ends in seconds since 1970, and which
// password it was given for, so that it ends with that one.
type claims struct {
	Subject string `json:"sub"`
	Expires int64  `json:"exp"`
	Version string `json:"ver"`
}

// NewKey is a random key for signing tokens.
func NewKey() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// Token is a JSON web token, signed with the cluster's key, that proves the user to every
// node until it expires or the password changes. Without a key it is "".
func (a *Authority) Token(u registry.User) string {
	key := a.accounts().Key
	if key == "" {
		return ""
	}
	text, _ := json.Marshal(claims{u.Name, a.now().Add(a.ttl).Unix(), version(u)}) // never fails: texts and a number
	signed := header + "." + encode(text)
	return signed + "." + encode(sign(key, signed))
}

// Verify is the user whom a token proves; the error is ErrTokenInvalid or ErrTokenExpired.
func (a *Authority) Verify(token string) (registry.User, error) {
	accounts := a.accounts()
	at := strings.LastIndexByte(token, '.')
	if at < 0 || len(token) > maxToken || accounts.Key == "" {
		return registry.User{}, ErrTokenInvalid
	}
	// Compared as text: decoding would take several texts for one signature.
	if !hmac.Equal([]byte(token[at+1:]), []byte(encode(sign(accounts.Key, token[:at])))) {
		return registry.User{}, ErrTokenInvalid
	}
	first, body, _ := strings.Cut(token[:at], ".")
	text, err := base64.RawURLEncoding.DecodeString(body)
	var c claims
	if first != header || err != nil || json.Unmarshal(text, &c) != nil {
		return registry.User{}, ErrTokenInvalid
	}
	if a.now().Unix() >= c.Expires {
		return registry.User{}, ErrTokenExpired
	}
	u, found := accounts.User(c.Subject)
	if !found || version(u) != c.Version {
		return registry.User{}, ErrTokenInvalid
	}
	return u, nil
}

// version names the password that a user has now.
func version(u registry.User) string {
	sum := sha256.Sum256([]byte(u.Hash))
	return hex.EncodeToString(sum[:8])
}

func sign(key, text string) []byte {
	h := hmac.New(sha256.New, []byte(key))
	h.Write([]byte(text))
	return h.Sum(nil)
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }
