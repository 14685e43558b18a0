package signpost

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"time"
)

// ConnectionError says that no complete response arrived, in any attempt: the connection failed, or each attempt took too
// long. A creation whose context ends has this error, too; errors.Is tells context.Canceled and context.DeadlineExceeded.
type ConnectionError struct {
	// IdempotencyKey is the key of a creation, as in APIError.
	IdempotencyKey string

	cause error
}

func (e *ConnectionError) Error() string { return fmt.Sprintf("signpost: no response: %v", e.cause) }

// Unwrap returns the error of the last attempt, or that of the context.
func (e *ConnectionError) Unwrap() error { return e.cause }

// APIError is an error response.
type APIError struct {
	// Status of HTTP: 400 for an invalid request, 401 for an invalid key, 403 if the plan does not allow it, 404, 409,
	// 413, 429 for too many requests (without Retry-After: the monthly quota is used up), 5xx.
	Status int
	// Message is one sentence that a person can act on.
	Message string
	// Code is for programs; only with some 403s.
	Code ErrorBodyCode
	// Field is what the message is about, if it is about a field: target_url.
	Field string
	// Limit and Used are the codes allowed and in use, with ErrorBodyCodeQrLimitReached.
	Limit, Used int
	// RequestID names this response in support requests.
	RequestID string
	// RetryAfter is the wait in seconds that the response asks for; negative if it does not. With a 409: a request with this
	// idempotency key is still being carried out; repeat the call with the same key. A 409 without: the key was used for
	// something else, or the code has no target to change or nothing to encode.
	RetryAfter int
	// IdempotencyKey is the key of a creation that failed, also one that the SDK has generated: with it and the same values,
	// the call can be repeated within 24 hours without creating twice.
	IdempotencyKey string
	// Header of the response, for example X-RateLimit-Reset.
	Header http.Header
}

func (e *APIError) Error() string { return fmt.Sprintf("signpost: %s (HTTP %d)", e.Message, e.Status) }

// aboutField matches a sentence about a field, which begins with its name.
var aboutField = regexp.MustCompile(`^([a-z]\w*[\w.\[\]]*): `)

// newAPIError describes a response. That of a proxy may have a body that is not the API's.
func newAPIError(response *http.Response, content []byte) *APIError {
	var body ErrorBody
	if json.Unmarshal(content, &body) != nil || body.Error == "" {
		body = ErrorBody{Error: response.Status}
		// Not followed, as that could send the key elsewhere.
		if location := response.Header.Get("Location"); location != "" && response.StatusCode < 400 {
			body.Error += ": a redirect to " + location
		}
	}
	failure := &APIError{
		Status:     response.StatusCode,
		Message:    body.Error,
		Code:       body.Code,
		Limit:      body.Limit,
		Used:       body.Used,
		RequestID:  response.Header.Get("X-Request-Id"),
		RetryAfter: -1,
		Header:     response.Header,
	}
	if wait, stated := retryAfter(response.Header); stated {
		failure.RetryAfter = int((wait + time.Second - 1) / time.Second)
	}
	if found := aboutField.FindStringSubmatch(body.Error); found != nil && failure.Status == http.StatusBadRequest {
		failure.Field = found[1]
	}
	return failure
}
