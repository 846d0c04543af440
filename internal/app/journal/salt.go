package journal

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/paceline-go/paceline/internal/app/durable"
)

// Salt makes names of credentials that are the same after a restart, and useless to a reader of the file.
type Salt []byte

// SaltOf reads the salt for the names of credentials in the file, or makes it.
func SaltOf(path string) (Salt, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		salt := make(Salt, sha256.Size)
		_, _ = rand.Read(salt)
		f, err := durable.Replace(durable.OS, path, []byte(hex.EncodeToString(salt)), nil) // a kill leaves no half of it
		f.Discard()
		return salt, err
	}
	if err != nil {
		return nil, err
	}
	salt, err := hex.DecodeString(strings.TrimSpace(string(text)))
	if err != nil || len(salt) != sha256.Size {
		return nil, fmt.Errorf("%s: expected %d hexadecimal digits; without it, what was sent with clients' own keys is "+
			"not known again", path, 2*sha256.Size)
	}
	return salt, nil
}

// KeyName is the name of a credential; empty if there is none.
func (s Salt) KeyName(credential string) string {
	if credential == "" {
		return ""
	}
	h := hmac.New(sha256.New, s)
	h.Write([]byte(credential))
	return hex.EncodeToString(h.Sum(nil)[:8])
}
