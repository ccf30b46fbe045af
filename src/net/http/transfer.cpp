#include "transfer.hpp"

#include <curl/curl.h>
#include <fmt/format.h>

#include <array>
#include <exception>
#include <memory>

#include <dtrain/base/error.hpp>
#include <dtrain/base/stop.hpp>
#include <dtrain/base/text.hpp>

#include "curl_settings.hpp"

namespace dtrain::net {
namespace {

constexpr long kStallBytesPerSecond = 100;
constexpr long kPartialContent = 206;

using Clock = std::chrono::steady_clock;

// What curl's callbacks see.
struct Exchange {
  const TransferRequest& request;
  const BodySink& sink;
  CURL* curl;
  TransferResult result{};
  std::string etag{}, last_modified{};
  std::uint64_t received = 0;
  Clock::time_point last_byte = Clock::now();
  bool begun = false, stalled = false;
  std::exception_ptr thrown{};
};

void take_content_range(Exchange& exchange, std::string_view value) {
  // "bytes FIRST-LAST/TOTAL", or "bytes */TOTAL" with status 416
  const std::size_t space = value.find(' '), dash = value.find('-'), slash = value.find('/');
  if (space == value.npos || slash == value.npos) return;
  if (const auto total = parse_integer(value.substr(slash + 1))) {
    exchange.result.total = static_cast<std::uint64_t>(*total);
  }
  if (dash == value.npos) return;
  if (const auto first = parse_integer(value.substr(space + 1, dash - space - 1))) {
    exchange.result.head.offset = static_cast<std::uint64_t>(*first);
  }
}

void take_header(Exchange& exchange, std::string_view line) {
  if (line.starts_with("HTTP/")) {  // the status line of a further answer, after a redirect
    exchange.etag.clear();
    exchange.last_modified.clear();
    exchange.result = {};
    return;
  }
  const std::size_t colon = line.find(':');
  if (colon == line.npos) return;
  const std::string_view name = line.substr(0, colon), value = trim(line.substr(colon + 1));
  const auto is = [&](std::string_view wanted) {
    return name.size() == wanted.size() && starts_with_ignoring_case(name, wanted);
  };
  if (is("etag") && !value.starts_with("W/")) exchange.etag = value;  // If-Range forbids weak ones
  if (is("last-modified")) exchange.last_modified = value;
  if (is("content-type")) exchange.result.head.content_type = value;
  if (is("content-range")) take_content_range(exchange, value);
  if (is("retry-after")) exchange.result.retry_after = std::chrono::seconds(parse_integer(value).value_or(0));
}

void complete_head(Exchange& exchange) {
  ResponseHead& head = exchange.result.head;
  curl_easy_getinfo(exchange.curl, CURLINFO_RESPONSE_CODE, &head.status);
  head.validator = exchange.etag.empty() ? exchange.last_modified : exchange.etag;
  if (!head.offset && head.status != kPartialContent) head.offset = 0;
  curl_off_t length = -1;
  curl_easy_getinfo(exchange.curl, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
  if (exchange.result.total == 0 && length > 0 && head.status < 300) {
    exchange.result.total = head.offset.value_or(0) + static_cast<std::uint64_t>(length);
  }
}

void begin_body(Exchange& exchange) {
  complete_head(exchange);
  exchange.sink.begin(exchange.result.head);
  exchange.begun = true;
}

std::size_t on_header(char* data, std::size_t, std::size_t size, void* user) {
  auto& exchange = *static_cast<Exchange*>(user);
  return keep_exception(exchange.thrown, [&] { take_header(exchange, {data, size}); }) ? size : 0;
}

std::size_t on_body(char* data, std::size_t, std::size_t size, void* user) {
  auto& exchange = *static_cast<Exchange*>(user);
  const bool taken = keep_exception(exchange.thrown, [&] {
    if (!exchange.begun) begin_body(exchange);
    exchange.sink.write(bytes_of({data, size}));
    exchange.received += size;
    exchange.last_byte = Clock::now();
  });
  return taken ? size : 0;
}

int on_progress(void* user, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  auto& exchange = *static_cast<Exchange*>(user);
  const Download& download = exchange.request.download;
  const bool go_on = keep_exception(exchange.thrown, [&] {
    if (stop_signal()) {
      throw Stopped(fmt::format("{}: the download was stopped", shown_url(download.url)),
                    "run the same command again to resume it");
    }
    if (!download.progress || !exchange.begun) return;
    const std::uint64_t total = download.size ? download.size : exchange.result.total;
    download.progress(exchange.result.head.offset.value_or(0) + exchange.received, total);
  });
  // curl's own limit looks at an average of seconds, so it notices slowness but sees a standstill late.
  exchange.stalled = exchange.begun && Clock::now() - exchange.last_byte > download.stall_timeout;
  return go_on && !exchange.stalled ? 0 : 1;
}

void set_limits(CURL* curl, const Download& download) {
  set_common_options(curl, {.url = download.url, .files = true, .redirects_to_http = !download.sha256.empty()});
  follow_redirects(curl);
  curl_easy_setopt(curl, CURLOPT_FAILONERROR, 1L);
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, static_cast<long>(download.connect_timeout.count()));
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, kStallBytesPerSecond);
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, static_cast<long>(download.stall_timeout.count()));
}

}  // namespace

TransferResult transfer(const TransferRequest& request, const BodySink& sink) {
  const CurlHandle curl(curl_easy_init());
  if (!curl) throw Error("libcurl does not start: out of memory?");
  Exchange exchange{.request = request, .sink = sink, .curl = curl.get()};
  std::array<char, CURL_ERROR_SIZE> message{};
  set_limits(curl.get(), request.download);
  set_callbacks(curl.get(), {on_header, on_body, on_progress}, &exchange);
  curl_easy_setopt(curl.get(), CURLOPT_ERRORBUFFER, message.data());
  HeaderList headers;
  if (request.offset > 0) {
    curl_easy_setopt(curl.get(), CURLOPT_RANGE, fmt::format("{}-", request.offset).c_str());
    if (!request.validator.empty()) {
      headers.reset(curl_slist_append(nullptr, fmt::format("If-Range: {}", request.validator).c_str()));
      curl_easy_setopt(curl.get(), CURLOPT_HTTPHEADER, headers.get());
    }
  }
  const CURLcode code = curl_easy_perform(curl.get());
  if (exchange.thrown) std::rethrow_exception(exchange.thrown);
  if (code == CURLE_OK && !exchange.begun) begin_body(exchange);  // an empty file
  complete_head(exchange);
  exchange.result.curl_code = code;
  exchange.result.untrusted = is_untrusted(code);
  exchange.result.message = message[0] ? message.data() : curl_easy_strerror(code);
  if (code == CURLE_UNSUPPORTED_PROTOCOL && starts_with_ignoring_case(request.download.url, "https:"))
    exchange.result.message +=
        ": the server leads to an address without encryption, where others could change the file";
  if (exchange.stalled) {
    exchange.result.curl_code = CURLE_OPERATION_TIMEDOUT;
    exchange.result.message = fmt::format("nothing came for {} s", request.download.stall_timeout.count());
  }
  return exchange.result;
}

bool worth_retrying(const TransferResult& result) {
  switch (result.curl_code) {
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
    case CURLE_PARTIAL_FILE:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM:
      return true;
    case CURLE_HTTP_RETURNED_ERROR:
      return result.head.status == 408 || result.head.status == 429 || result.head.status >= 500;
    default:
      return false;
  }
}

}  // namespace dtrain::net
