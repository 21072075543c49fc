package registry

import (
	"fmt"
	"strings"
)

// Limits of accounts. Names are counted in bytes.
const (
	MaxUserName    = 128
	MaxRole        = 128
	MaxResource    = 1_024
	MaxUsers       = 10_000
	MaxBindings    = 10_000
	MaxPermissions = 10_000

	// hashLen is the length of every bcrypt hash, minAuthKey the least of a signing key.
	hashLen    = 60
	minAuthKey = 32
	maxAuthKey = 256
)

// ValidateUser checks an account's name and that its hash is one of bcrypt.
func ValidateUser(u User) error {
	if err := validateWord("username", u.Name, MaxUserName); err != nil {
		return err
	}
	if len(u.Hash) != hashLen || !strings.HasPrefix(u.Hash, "$2") || !plain(u.Hash) {
		return Invalid("password", "", "has no bcrypt hash")
	}
	return nil
}

// ValidatePermission checks the texts of a permission.
func ValidatePermission(p Permission) error {
	if err := validateRole(p.Role); err != nil {
		return err
	}
	if p.Resource == "" || len(p.Resource) > MaxResource || !plain(p.Resource) {
		return Invalid("resource", p.Resource, fmt.Sprintf("must be a text of at most %d bytes", MaxResource))
	}
	if p.Action != "r" && p.Action != "w" && p.Action != "rw" {
		return Invalid("action", p.Action, "must be r, w or rw")
	}
	return nil
}

// ValidateAuthKey checks the key that signs tokens. The error shows nothing of it.
func ValidateAuthKey(key string) error {
	if len(key) < minAuthKey || len(key) > maxAuthKey || !plain(key) {
		return Invalid("key", "", fmt.Sprintf("must be a text of %d to %d bytes", minAuthKey, maxAuthKey))
	}
	return nil
}

func validateRole(role string) error { return validateWord("role", role, MaxRole) }

// validateWord checks a name: not empty, bounded, UTF-8, no blank at its ends and no
// control characters.
func validateWord(field, value string, limit int) error {
	switch {
	case value == "":
		return Invalid(field, value, "must not be empty")
	case len(value) > limit:
		return tooLong(field, value, limit)
	case strings.TrimSpace(value) != value || !plain(value):
		return Invalid(field, value, "has blanks at its ends, control characters, or is not UTF-8")
	}
	return nil
}

func full(field, value, what string, limit int) error {
	return Invalid(field, value, fmt.Sprintf("there are %d %s already, the limit", limit, what))
}
