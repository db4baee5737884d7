package hostile

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"
	"time"
)

var onGuards = []Attack{
	{Name: "tokens that are none", Unit: "tokens", once: tokens(func(a *attacker) string { return a.word() + "." + a.word() + "." + a.word() })},
	{Name: "huge tokens", Unit: "tokens", once: tokens(func(a *attacker) string { return a.word() + strings.Repeat("x", 8000) })},
	{Name: "tokens too long", Unit: "tokens", once: tokens(func(a *attacker) string { return a.word() + strings.Repeat("x", 9000) })},
	{Name: "forged ES256", Unit: "tokens", once: tokens(func(a *attacker) string { return a.forged("ES256", keyES256, 64) })},
	{Name: "forged RS256", Unit: "tokens", once: tokens(func(a *attacker) string { return a.forged("RS256", keyRS256, 256) })},
	// Each waits until the issuer was asked whether there are new keys.
	{Name: "unknown keys", Unit: "tokens", Holds: true, once: tokens(func(a *attacker) string { return a.forged("ES256", a.word(), 64) })},
	{Name: "forged answers to challenges", Unit: "requests", once: func(ctx context.Context, a *attacker) (int, error) {
		return a.ask(ctx, 50, func(int) string {
			nonce := make([]byte, 16)
			_, _ = a.rand.Read(nonce) // it can't fail
			return "POST " + GuardedPath + " HTTP/1.1\r\nHost: a\r\nContent-Type: application/x-challenge-response\r\nX-Challenge: " + Node + "." +
				base64.RawURLEncoding.EncodeToString(nonce) + "\r\nAuthorization: Bearer " + a.forged("ES256", keyES256, 64) + "\r\n\r\n"
		})
	}},
}

// tokens is an attack that asks for the guarded route with one token after the
// other.
func tokens(token func(*attacker) string) func(context.Context, *attacker) (int, error) {
	return func(ctx context.Context, a *attacker) (int, error) {
		return a.ask(ctx, 50, func(int) string {
			return "GET " + GuardedPath + " HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer " + token(a) + "\r\n\r\n"
		})
	}
}

// forged is a token as the issuer makes them, but for the signature, which is
// made up, of so many bytes. No two are alike.
func (a *attacker) forged(algorithm, kid string, bytes int) string {
	b64 := base64.RawURLEncoding
	head := fmt.Sprintf(`{"alg":%q,"typ":"JWT","kid":%q}`, algorithm, kid)
	claims := fmt.Sprintf(`{"iss":%q,"aud":"streams","sub":%q,"exp":%d}`, a.at.Issuer, a.word(), time.Now().Add(time.Hour).Unix())
	sign := make([]byte, bytes)
	_, _ = a.rand.Read(sign) // it can't fail
	sign[0] = 0              // below the modulus of RSA
	return b64.EncodeToString([]byte(head)) + "." + b64.EncodeToString([]byte(claims)) + "." + b64.EncodeToString(sign)
}
