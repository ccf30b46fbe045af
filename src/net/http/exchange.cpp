#include "exchange.hpp"

#include <curl/curl.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <exception>

#include <dtrain/base/stop.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/net/http.hpp>

#include "curl_settings.hpp"

namespace dtrain::net {
namespace {

constexpr long kReceiveBuffer = 256 << 10;

// What curl's callbacks see.
struct Running {
  const Exchange& request;
  CURL* curl;
  AwsAnswer answer{};
  std::size_t sent = 0;
  std::exception_ptr thrown{};
  bool too_long = false;
};

void take_header(AwsAnswer& answer, std::string_view line) {
  if (line.starts_with("HTTP/")) answer.headers.clear();
  const std::size_t colon = line.find(':');
  if (colon == line.npos) return;
  answer.headers.emplace_back(lower_case(trim(line.substr(0, colon))), trim(line.substr(colon + 1)));
}

// False: the body is longer than any should be.
bool take_body(Running& running, std::string_view piece) {
  AwsAnswer& answer = running.answer;
  curl_easy_getinfo(running.curl, CURLINFO_RESPONSE_CODE, &answer.status);
  if (running.request.sink && answer.status / 100 == 2) {
    running.request.sink(answer, bytes_of(piece));
    return true;
  }
  running.too_long = answer.body.size() + piece.size() > running.request.largest_body;
  if (!running.too_long) answer.body.append(piece);
  return !running.too_long;
}

std::size_t on_header(char* data, std::size_t, std::size_t size, void* user) {
  auto& running = *static_cast<Running*>(user);
  return keep_exception(running.thrown, [&] { take_header(running.answer, {data, size}); }) ? size : 0;
}

std::size_t on_body(char* data, std::size_t, std::size_t size, void* user) {
  auto& running = *static_cast<Running*>(user);
  bool taken = false;
  return keep_exception(running.thrown, [&] { taken = take_body(running, {data, size}); }) && taken ? size : 0;
}

std::size_t on_upload(char* out, std::size_t, std::size_t size, void* user) {
  auto& running = *static_cast<Running*>(user);
  const std::size_t count = std::min(size, running.request.body.size() - running.sent);
  if (count > 0) std::memcpy(out, running.request.body.data() + running.sent, count);
  running.sent += count;
  return count;
}

int on_seek(void* user, curl_off_t offset, int origin) {
  auto& running = *static_cast<Running*>(user);
  if (origin != SEEK_SET) return CURL_SEEKFUNC_FAIL;
  running.sent = static_cast<std::size_t>(offset);
  return CURL_SEEKFUNC_OK;
}

int on_progress(void* user, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  const Exchange& request = static_cast<const Running*>(user)->request;
  return (request.stop_on_signal && stop_signal()) || request.cancel.stop_requested() ? 1 : 0;
}

HeaderList header_list(const Exchange& request) {
  curl_slist* list = nullptr;
  for (const auto& [name, value] : request.headers) {
    list = curl_slist_append(list, fmt::format("{}{} {}", name, value.empty() ? ";" : ":", value).c_str());
  }
  // curl would wait a second for a "continue" that few servers send, and add a type of its own to bodies.
  for (const char* none : {"Expect:", "Accept:", "Content-Type:"}) {
    const std::string_view name(none, std::strlen(none) - 1);
    const bool given = std::any_of(request.headers.begin(), request.headers.end(), [&](const HttpField& field) {
      return field.first.size() == name.size() && starts_with_ignoring_case(field.first, name);
    });
    if (!given) list = curl_slist_append(list, none);
  }
  return HeaderList(list);
}

void set_limits(CURL* curl, const Exchange& request) {
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(request.connect_timeout.count()));
  curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, static_cast<long>(request.whole_timeout.count()));
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, static_cast<long>(request.slowest_rate));
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, static_cast<long>(request.stall_timeout.count()));
  curl_easy_setopt(curl, CURLOPT_TCP_KEEPALIVE, 1L);  // routers forget a connection on which nothing goes for minutes
  curl_easy_setopt(curl, CURLOPT_BUFFERSIZE, kReceiveBuffer);
  curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);  // parallel connections are wanted
  if (request.follow_redirects) follow_redirects(curl);
  if (request.direct) curl_easy_setopt(curl, CURLOPT_PROXY, "");
  curl_easy_setopt(curl, CURLOPT_FRESH_CONNECT, request.fresh ? 1L : 0L);
}

void set_method(CURL* curl, Running& running) {
  const Exchange& request = running.request;
  if (request.method == "HEAD") curl_easy_setopt(curl, CURLOPT_NOBODY, 1L);
  curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, request.method.c_str());
  if (request.method != "PUT" && request.method != "POST") return;
  curl_easy_setopt(curl, CURLOPT_UPLOAD, 1L);
  curl_easy_setopt(curl, CURLOPT_INFILESIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
  curl_easy_setopt(curl, CURLOPT_READFUNCTION, on_upload);
  curl_easy_setopt(curl, CURLOPT_READDATA, &running);
  curl_easy_setopt(curl, CURLOPT_SEEKFUNCTION, on_seek);
  curl_easy_setopt(curl, CURLOPT_SEEKDATA, &running);
}

}  // namespace

std::string trust_hint(bool by_profile) {
  return fmt::format(
      "if a proxy or an authority of your own signs it, name the file of trusted certificates: AWS_CA_BUNDLE, "
      "{}CURL_CA_BUNDLE or SSL_CERT_FILE",
      by_profile ? "ca_bundle of the AWS profile, " : "");
}

struct HttpConnections::Handle {
  CURL* curl = curl_easy_init();
  ~Handle() { curl_easy_cleanup(curl); }
};

HttpConnections::HttpConnections() = default;
HttpConnections::~HttpConnections() = default;

std::unique_ptr<HttpConnections::Handle> HttpConnections::take() {
  const MutexLock lock(mutex_);
  if (idle_.empty()) return std::make_unique<Handle>();
  auto handle = std::move(idle_.back());
  idle_.pop_back();
  return handle;
}

void HttpConnections::give_back(std::unique_ptr<Handle> handle) {
  const MutexLock lock(mutex_);
  idle_.push_back(std::move(handle));
}

ExchangeResult HttpConnections::exchange(const Exchange& request) {
  auto handle = take();
  CURL* const curl = handle->curl;
  if (!curl) throw Error("libcurl does not start: out of memory?");
  curl_easy_reset(curl);  // keeps its connections
  Running running{.request = request, .curl = curl};
  std::array<char, CURL_ERROR_SIZE> message{};
  const HeaderList headers = header_list(request);
  set_common_options(curl, {.url = request.url, .ca_bundle = request.ca_bundle});
  set_limits(curl, request);
  set_method(curl, running);
  set_callbacks(curl, {on_header, on_body, on_progress}, &running);
  curl_easy_setopt(curl, CURLOPT_PATH_AS_IS, 1L);
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers.get());
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, message.data());
  const CURLcode code = curl_easy_perform(curl);
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &running.answer.status);
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, nullptr);
  give_back(std::move(handle));
  if (running.thrown) std::rethrow_exception(running.thrown);
  if (request.stop_on_signal && stop_signal()) {
    throw Stopped(fmt::format("{}: stopped", shown_url(request.url)), "run the same command again to go on");
  }
  ExchangeResult result;
  result.answer = std::move(running.answer);
  if (code != CURLE_OK) result.failure = message[0] ? message.data() : curl_easy_strerror(code);
  result.too_long = running.too_long;
  if (result.too_long) result.failure = "the answer is longer than any should be";
  result.timed_out = code == CURLE_OPERATION_TIMEDOUT;
  result.untrusted = is_untrusted(code);
  return result;
}

}  // namespace dtrain::net
