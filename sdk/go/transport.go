package signpost

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	randv2 "math/rand/v2"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// firstDelay is the longest wait before the first repetition; it doubles with every further one.
const firstDelay = 500 * time.Millisecond

// While another request with its idempotency key is being carried out (a 409 with Retry-After), a creation is repeated every
// inFlightPause or so, for inFlightTotal after the first such answer: a batch may take 20 seconds.
const (
	inFlightPause = time.Second
	inFlightTotal = 30 * time.Second
)

// longestRetryAfter is the longest Retry-After that is distinguished. Longer ones could overflow a time.Duration.
const longestRetryAfter = 24 * 24 * time.Hour

// maxResponseBytes is the most bytes of a response, decompressed.
const maxResponseBytes = 64 << 20

// transient has the statuses of a failure that may be over at the next attempt.
var transient = []int{500, 502, 503, 504}

type transport struct {
	key, base  string
	http       *http.Client
	timeout    time.Duration
	maxRetries int
	maxDelay   time.Duration
}

type request struct {
	method, path string
	query        url.Values
	// body is sent as JSON unless nil.
	body any
	// idempotencyKey is required for POST, and not sent with the others.
	idempotencyKey string
}

// errEmptyKey keeps a key that is missing by mistake from letting repetitions create twice.
var errEmptyKey = errors.New("signpost: the idempotency key must not be empty")

// CreateOption changes how something is created.
type CreateOption func(*request)

// WithIdempotencyKey names a creation by 1 to 255 visible ASCII characters: whoever repeats it within 24 hours with the
// same key, even after a crash, gets the first result. Default: a new key, which all retries of the call share.
func WithIdempotencyKey(key string) CreateOption {
	return func(r *request) { r.idempotencyKey = key }
}

// answer is a successful response, or the 404 of a DELETE that an earlier attempt may have carried out.
type answer struct {
	status  int
	header  http.Header
	content []byte
}

// json sends a request and decodes its response.
func (t *transport) json(ctx context.Context, r request, into any) error {
	answered, err := t.send(ctx, r)
	if err != nil {
		return err
	}
	return answered.decode("data", into)
}

// decode decodes the JSON of an answer, which has the given member. At a wrong address something else may have answered.
func (a *answer) decode(member string, into any) error {
	var members map[string]json.RawMessage
	err := json.Unmarshal(a.content, &members)
	if value := members[member]; err == nil && (value == nil || string(value) == "null") {
		err = fmt.Errorf("it has no %s", member)
	}
	if err == nil {
		err = json.Unmarshal(a.content, into)
	}
	if err != nil {
		return fmt.Errorf("signpost: the response is not that of the API (HTTP %d): %w", a.status, err)
	}
	return nil
}

// send returns an answer, or an error when all retries are used up.
func (t *transport) send(ctx context.Context, r request) (*answer, error) {
	if !isVisible(r.idempotencyKey) {
		return nil, errors.New("signpost: the idempotency key must consist of visible ASCII characters")
	}
	if r.method == http.MethodPost && r.idempotencyKey == "" {
		return nil, errEmptyKey
	}
	var body []byte
	if r.body != nil {
		var err error
		if body, err = encode(r.body); err != nil {
			return nil, err
		}
	}
	// Whether an attempt ended without a definite answer: it may have been carried out.
	isUnknown := false
	// Until when a creation in flight is awaited.
	var inFlightUntil time.Time
	for retries := 0; ; {
		answered, err := t.attempt(ctx, r, body)
		var failure *APIError
		isResponse := errors.As(err, &failure)
		if err == nil {
			return answered, nil
		}
		if isUnknown && r.method == http.MethodDelete && isResponse && failure.Status == http.StatusNotFound {
			return &answer{status: failure.Status, header: failure.Header}, nil
		}
		isUnknown = isUnknown || !isResponse || failure.Status >= 500
		if ctx.Err() != nil {
			return nil, ended(ctx, r)
		}
		inFlight := isResponse && failure.Status == http.StatusConflict && failure.RetryAfter >= 0
		var delay time.Duration
		var again bool
		if inFlight && r.idempotencyKey != "" && t.maxRetries > 0 {
			if inFlightUntil.IsZero() {
				inFlightUntil = time.Now().Add(inFlightTotal)
			}
			stated := time.Duration(failure.RetryAfter) * time.Second
			delay = max(inFlightPause, stated) + time.Duration(randv2.Float64()*float64(firstDelay))
			again = !time.Now().Add(delay).After(inFlightUntil)
		} else {
			delay, again = t.delayAfter(err, retries)
			retries++
		}
		if !again {
			return nil, withKey(err, r.idempotencyKey)
		}
		select {
		case <-ctx.Done():
			return nil, ended(ctx, r)
		case <-time.After(delay):
		}
	}
}

// ended is the error of a request whose context has ended. A creation may have been carried out, so its error has the key.
func ended(ctx context.Context, r request) error {
	if r.idempotencyKey == "" {
		return ctx.Err()
	}
	return &ConnectionError{IdempotencyKey: r.idempotencyKey, cause: ctx.Err()}
}

func (t *transport) attempt(ctx context.Context, r request, body []byte) (*answer, error) {
	if t.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, t.timeout)
		defer cancel()
	}
	address := t.base + r.path
	if query := r.query.Encode(); query != "" {
		address += "?" + query
	}
	sent, err := http.NewRequestWithContext(ctx, r.method, address, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("signpost: %w", err)
	}
	sent.Header.Set("Authorization", "Bearer "+t.key)
	if body != nil {
		sent.Header.Set("Content-Type", "application/json")
	}
	if r.idempotencyKey != "" {
		sent.Header.Set("Idempotency-Key", r.idempotencyKey)
	}
	if body != nil {
		// Otherwise net/http itself would repeat a POST with an Idempotency-Key, without counting or waiting.
		sent.GetBody = nil
	}
	response, err := t.http.Do(sent)
	if err != nil {
		return nil, &ConnectionError{cause: err}
	}
	defer response.Body.Close()
	content, err := io.ReadAll(io.LimitReader(response.Body, maxResponseBytes+1))
	if err != nil {
		return nil, &ConnectionError{cause: err}
	}
	if len(content) > maxResponseBytes {
		return nil, errors.New("signpost: the response has more than 64 MiB")
	}
	if response.StatusCode < 200 || response.StatusCode > 299 {
		return nil, newAPIError(response, content)
	}
	return &answer{response.StatusCode, response.Header, content}, nil
}

// withKey puts an idempotency key on an error.
func withKey(err error, key string) error {
	var failure *APIError
	var connection *ConnectionError
	if errors.As(err, &failure) {
		failure.IdempotencyKey = key
	} else if errors.As(err, &connection) {
		connection.IdempotencyKey = key
	}
	return err
}

// delayAfter tells how long to wait before a repetition, and whether there should be one.
func (t *transport) delayAfter(err error, retries int) (time.Duration, bool) {
	if retries >= t.maxRetries {
		return 0, false
	}
	most := min(float64(t.maxDelay), float64(firstDelay)*math.Pow(2, float64(retries)))
	backOff := time.Duration(randv2.Float64() * most)
	var connection *ConnectionError
	if errors.As(err, &connection) {
		return backOff, true
	}
	var failure *APIError
	if !errors.As(err, &failure) {
		return 0, false
	}
	wait, stated := retryAfter(failure.Header)
	// A 429 without Retry-After: the monthly quota is used up.
	tooFast := failure.Status == http.StatusTooManyRequests && stated
	if !tooFast && !slices.Contains(transient, failure.Status) {
		return 0, false
	}
	if !stated {
		return backOff, true
	}
	// Spread clients that were all told to wait for the same time.
	return wait + time.Duration(randv2.Float64()*float64(firstDelay)), wait <= t.maxDelay
}

// retryAfter is the wait that a response states. Proxies may send it as a date (RFC 9110 §10.2.3).
func retryAfter(header http.Header) (time.Duration, bool) {
	value := header.Get("Retry-After")
	// Of a number that is too large, it is the largest.
	if seconds, err := strconv.ParseUint(value, 10, 31); err == nil || errors.Is(err, strconv.ErrRange) {
		return min(time.Duration(seconds)*time.Second, longestRetryAfter), true
	}
	date, err := http.ParseTime(value)
	return min(max(0, time.Until(date)), longestRetryAfter), err == nil
}

// isVisible tells whether a key consists of visible ASCII characters. net/http would reject one with a line break as if
// the connection had failed.
func isVisible(key string) bool {
	return !strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' })
}

// encode writes JSON without escaping characters of HTML, which URLs contain. Text that is not UTF-8 is an error:
// encoding/json would change it.
func encode(value any) ([]byte, error) {
	if text := notUTF8(reflect.ValueOf(value)); text != "" {
		return nil, fmt.Errorf("signpost: %q is not UTF-8", text)
	}
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, fmt.Errorf("signpost: %w", err)
	}
	return bytes.TrimSuffix(buffer.Bytes(), []byte("\n")), nil
}

// notUTF8 returns the first text in a value that is not UTF-8; empty if there is none.
func notUTF8(value reflect.Value) (text string) {
	switch value.Kind() {
	case reflect.String:
		if !utf8.ValidString(value.String()) {
			text = value.String()
		}
	case reflect.Pointer:
		if !value.IsNil() {
			text = notUTF8(value.Elem())
		}
	case reflect.Slice:
		for index := 0; index < value.Len() && text == ""; index++ {
			text = notUTF8(value.Index(index))
		}
	case reflect.Struct:
		for index := 0; index < value.NumField() && text == ""; index++ {
			text = notUTF8(value.Field(index))
		}
	}
	return text
}

// creation is the request of something new, with a new idempotency key unless the caller has one.
func creation(path string, body any, options []CreateOption) request {
	r := request{method: http.MethodPost, path: path, body: body, idempotencyKey: rand.Text()}
	for _, option := range options {
		option(&r)
	}
	return r
}
