#include <dtrain/net/http_exchange.hpp>

#include <fmt/format.h>

#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/net/http.hpp>

#include "exchange.hpp"

namespace dtrain::net {
namespace {

constexpr std::size_t kLongestBody = 1 << 20;

}  // namespace

HttpAnswer exchange_http(const HttpCall& call, const std::stop_token& cancel) {
  Exchange exchange{.method = call.method,
                    .url = call.url,
                    .body = bytes_of(call.body),
                    .connect_timeout = call.deadline,
                    .whole_timeout = call.deadline,
                    .slowest_rate = 0,
                    .stop_on_signal = call.stop_on_signal,
                    .direct = call.direct,
                    .ca_bundle = call.ca_bundle.value_or(""),
                    .largest_body = kLongestBody,
                    .cancel = cancel};
  for (const std::string& header : call.headers) {
    const std::size_t colon = header.find(':');
    exchange.headers.emplace_back(header.substr(0, colon), trim(std::string_view(header).substr(colon + 1)));
  }
  ExchangeResult result = HttpConnections().exchange(exchange);
  if (!result.failure.empty()) {
    throw RemoteError(fmt::format("{}: {}", shown_url(call.url), result.failure),
                      result.untrusted ? trust_hint(call.ca_bundle.has_value()) : "");
  }
  return {.status = result.answer.status, .body = std::move(result.answer.body)};
}

}  // namespace dtrain::net
