#include <dtrain/net/http.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include <dtrain/base/error.hpp>
#include <dtrain/base/hash.hpp>
#include <dtrain/base/stop.hpp>
#include <dtrain/base/text.hpp>

#include "exchange.hpp"
#include "partial_file.hpp"
#include "transfer.hpp"

namespace dtrain::net {
namespace {

constexpr auto kLongestPause = std::chrono::seconds(60);
constexpr long kRangeNotSatisfiable = 416;

std::string hash_of(const Path& path) { return sha256_hex(MappedFile(path).bytes()); }

bool already_there(const Download& request) {
  if (!std::filesystem::is_regular_file(request.to)) return false;
  if (request.size && std::filesystem::file_size(request.to) != request.size) return false;
  if (!request.sha256.empty()) return hash_of(request.to) == request.sha256;
  return request.size > 0;
}

bool looks_like_html(const ResponseHead& head, std::string_view beginning) {
  const std::string_view text = trim(beginning);
  return starts_with_ignoring_case(head.content_type, "text/html") ||
         starts_with_ignoring_case(text, "<!doctype html") || starts_with_ignoring_case(text, "<html");
}

struct TooLong {
  std::uint64_t size = 0;  // as far as it came
};

// Whether the server now has another version than the one whose beginning is there. Servers that pass over If-Range
// send the rest of it all the same.
bool was_replaced(const PartialFile& part, const ResponseHead& answer) {
  return !part.validator().empty() && !answer.validator.empty() && answer.validator != part.validator();
}

// Whether the answer is no continuation of the part: the rest of another version, or bytes of an unknown position.
bool is_other_rest(const PartialFile& part, const ResponseHead& answer) {
  if (part.size() == 0) return false;
  return !answer.offset || (*answer.offset > 0 && was_replaced(part, answer));
}

struct OtherRest {};

// libcurl reads a file:// URL from the offset on, but its answer does not say so.
bool can_resume(const Download& request, const PartialFile& part) {
  if (starts_with_ignoring_case(request.url, "file:")) return false;
  return part.size() > 0 && (!part.validator().empty() || !request.sha256.empty());
}

// One try: appends to the partial file, or begins it anew when the server sends everything again, or a rest that does
// not belong to it. Throws TooLong where more comes than the file has.
TransferResult try_once(const Download& request, PartialFile& part) {
  ResponseHead head;
  bool first = true;
  const BodySink sink{
      .begin =
          [&](const ResponseHead& answer) {
            head = answer;
            if (is_other_rest(part, answer)) throw OtherRest{};
            part.begin_at(answer.offset.value_or(0), answer.validator);
          },
      .write =
          [&](ByteView bytes) {
            if (std::exchange(first, false) && looks_like_html(head, text_of(bytes))) {
              part.remove();
              throw RemoteError(
                  fmt::format("{}: the server sent an HTML page in place of the file", shown_url(request.url)),
                  "open the URL in a browser: a login or a proxy may stand in between, or the file moved");
            }
            const std::uint64_t size = part.size() + bytes.size();
            if (request.size && size > request.size) throw TooLong{size};
            part.write(bytes);
          }};
  if (!can_resume(request, part)) part.remove();
  try {
    return transfer({request, part.size(), part.validator()}, sink);
  } catch (const OtherRest&) {
    part.remove();
    return try_once(request, part);
  }
}

// Half to one and a half times the pause, so that many clients do not come back at the same moment.
std::chrono::milliseconds with_jitter(std::chrono::milliseconds pause) {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return pause / 2 + pause * (std::chrono::duration_cast<std::chrono::microseconds>(now).count() % 1000) / 1000;
}

void pause_before(int attempt, const Download& request, std::chrono::seconds retry_after) {
  auto pause = with_jitter(request.first_pause * (1 << std::min(attempt - 1, 10)));
  if (retry_after.count() > 0) pause = retry_after;
  const auto end = std::chrono::steady_clock::now() + std::min<std::chrono::milliseconds>(pause, kLongestPause);
  while (!stop_signal() && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::min<std::chrono::milliseconds>(pause, std::chrono::milliseconds(20)));
  }
}

[[noreturn]] void give_up(const Download& request, const PartialFile& part, const TransferResult& result,
                          int attempts) {
  const std::string tries = attempts > 1 ? fmt::format(" ({} tries)", attempts) : "";
  std::string hint = result.untrusted  ? trust_hint(/*by_profile=*/false)
                      : part.size() > 0 ? fmt::format("{} are kept: run the same command again to go on from there",
                                                      format_bytes(part.size()))
                                       : "check the URL and the network";
  throw RemoteError(fmt::format("{}: {}{}", shown_url(request.url), result.message, tries), hint);
}

// The size that the whole body should have; 0 if it is unknown.
std::uint64_t expected_size(const Download& request, const TransferResult& result) {
  return request.size ? request.size : result.total;
}

// Fetches until the partial file has its whole size.
void fetch(const Download& request, PartialFile& part) {
  for (int attempt = 1;; ++attempt) {
    if (request.size && part.size() == request.size) return;
    TransferResult result = try_once(request, part);
    if (result.head.status == kRangeNotSatisfiable) {
      if (result.total && result.total == part.size() && !was_replaced(part, result.head)) return;
      part.remove();  // longer than the file on the server: it is another file's beginning
    } else if (result.ok()) {
      if (part.size() >= expected_size(request, result)) return;
      result.message = fmt::format("ended early, after {} of {} bytes", part.size(), expected_size(request, result));
    } else if (!worth_retrying(result)) {
      give_up(request, part, result, attempt);
    }
    if (attempt >= request.attempts) give_up(request, part, result, attempt);
    pause_before(attempt, request, result.retry_after);
  }
}

std::string wrong_size(const Download& request, std::uint64_t size) {
  return fmt::format("{} bytes came, {} were expected", size, request.size);
}

// Fetches it. Empty if the content is right, else what is wrong with it.
std::string fetch_and_check(const Download& request, PartialFile& part) {
  try {
    fetch(request, part);
  } catch (const TooLong& body) {
    return wrong_size(request, body.size);
  }
  if (request.size && part.size() != request.size) return wrong_size(request, part.size());
  if (request.sha256.empty()) return {};
  const std::string hash = hash_of(part.path());
  if (hash == request.sha256) return {};
  return fmt::format("its SHA-256 is {}, not {}", hash, request.sha256);
}

}  // namespace

std::string shown_url(std::string_view url) {
  const std::size_t scheme = url.find("://");
  if (scheme == url.npos || url.starts_with("s3:") || starts_with_ignoring_case(url, "file:")) return std::string(url);
  const std::size_t begin = scheme + 3;
  url = url.substr(0, url.find_first_of("?#", begin));
  const std::string_view authority = url.substr(begin, url.find('/', begin) - begin);
  const std::size_t at = authority.rfind('@');
  return fmt::format("{}{}", url.substr(0, begin), url.substr(at == authority.npos ? begin : begin + at + 1));
}

std::string stored_url(std::string_view url) {
  const std::string shown = shown_url(url);
  const std::size_t rest = url.find_first_of("?#");
  if (shown == url || rest == url.npos) return shown;
  return fmt::format("{} {}", shown, sha256_hex(bytes_of(shown + std::string(url.substr(rest)))));
}

void download(const Download& request) {
  if (already_there(request)) return;
  PartialFile part(request.to, request.url);
  const bool resumed = part.size() > 0;
  std::string wrong = fetch_and_check(request, part);
  if (!wrong.empty() && resumed) {  // the beginning was of another version: once more, from the start
    part.remove();
    wrong = fetch_and_check(request, part);
  }
  if (!wrong.empty()) {
    part.remove();
    throw DataError(fmt::format("{}: {}", shown_url(request.url), wrong),
                    "the file there changed, or something on the way did it");
  }
  part.complete();
}

}  // namespace dtrain::net
