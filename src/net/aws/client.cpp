#include <curl/curl.h>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <mutex>

#include <dtrain/base/error.hpp>
#include <dtrain/base/hash.hpp>
#include <dtrain/base/stop.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/net/aws.hpp>
#include <dtrain/net/http.hpp>

#include "http/exchange.hpp"
#include "pause.hpp"
#include "problem.hpp"
#include "sigv4.hpp"

namespace dtrain::net {
namespace {

constexpr int kUsualAttempts = 5;
// S3 puts an object together in minutes.
constexpr auto kLongestWork = std::chrono::minutes(10);
// A signature holds for five minutes around the server's time; below that a refusal has another cause.
constexpr auto kTolerableSkew = std::chrono::minutes(4);

// "https://host:port" and "/path" of an endpoint; the path is usually empty.
struct EndpointParts {
  std::string origin, path;
  std::string host() const { return origin.substr(origin.find("://") + 3); }
};

EndpointParts parts_of_endpoint(const std::string& endpoint) {
  const std::size_t slash = std::min(endpoint.find('/', endpoint.find("://") + 3), endpoint.size());
  return {endpoint.substr(0, slash), endpoint.substr(slash)};
}

// Public objects, whose requests follow redirects, are no matter of the AWS profile.
bool profile_counts(const AwsRequest& request) { return !request.follow_redirects; }

// What may be signed as the clock's fault when the clock is far off.
bool may_mean_skew(const AwsError::Facts& facts) {
  return facts.code == "SignatureDoesNotMatch" || facts.code == "InvalidSignatureException" ||
         facts.code == "AuthFailure" || facts.code == "RequestExpired" || (facts.code.empty() && facts.status == 403);
}

// What it means that there was no complete answer.
AwsProblem problem_of(const ExchangeResult& result) {
  if (result.untrusted) return AwsProblem::untrusted;
  return result.too_long ? AwsProblem::other : AwsProblem::transient;
}

}  // namespace

std::string AwsAnswer::header(std::string_view name) const {
  const auto found =
      std::find_if(headers.begin(), headers.end(), [&](const HttpField& one) { return one.first == name; });
  return found == headers.end() ? std::string() : found->second;
}

struct AwsClient::State {
  State(AwsService the_service, AwsSettings the_settings, AwsLimits the_limits, std::shared_ptr<AwsIdentity> shared)
      : service(the_service),
        settings(std::move(the_settings)),
        limits(the_limits),
        identity(shared ? std::move(shared) : std::make_shared<AwsIdentity>(settings)) {}

  AwsService service;
  AwsSettings settings;
  AwsLimits limits;
  std::shared_ptr<AwsIdentity> identity;
  HttpConnections connections;
  std::atomic<std::int64_t> skew_seconds{0};  // the server's clock less ours
  std::once_flag has_ca_bundle;
  std::string ca_bundle;  // see trust()

  Exchange exchange_of(const AwsRequest& request, const std::optional<AwsCredentials>& credentials);
  const std::string& trust(const AwsRequest& request);
  std::vector<HttpField> signed_headers(const AwsRequest& request, const std::string& path, const std::string& query,
                                        const AwsCredentials& credentials) const;
  bool learn_skew(const AwsAnswer& answer);
  bool make_good(const AwsError::Facts& facts, const AwsAnswer& answer, const std::optional<AwsCredentials>& used);
};

std::vector<HttpField> AwsClient::State::signed_headers(const AwsRequest& request, const std::string& path,
                                                        const std::string& query,
                                                        const AwsCredentials& credentials) const {
  const WallTime now = settings.clock() + std::chrono::seconds(skew_seconds);
  const bool encrypted = request.endpoint.starts_with("https://");
  const bool hash_it = !encrypted || !service.signs_path_as_sent || request.body.empty();
  RequestToSign to_sign{.method = request.method,
                        .path = canonical_path(path, service.signs_path_as_sent),
                        .query = query,
                        .headers = request.headers,
                        .payload_hash = hash_it ? sha256_hex(request.body) : std::string(kUnsignedPayload)};
  const SigningKey key{.access_key = credentials.access_key,
                       .secret_key = credentials.secret_key,
                       .time = amazon_time(now),
                       .region = request.region,
                       .service = std::string(service.name)};
  to_sign.headers.emplace_back("Host", parts_of_endpoint(request.endpoint).host());
  to_sign.headers.emplace_back("X-Amz-Date", key.time);
  if (service.signs_path_as_sent) to_sign.headers.emplace_back("X-Amz-Content-Sha256", to_sign.payload_hash);
  if (!credentials.session_token.empty()) {
    to_sign.headers.emplace_back("X-Amz-Security-Token", credentials.session_token);
  }
  std::vector<HttpField> headers = to_sign.headers;
  headers.emplace_back("Authorization", authorization(to_sign, key));
  return headers;
}

// The profile's file of trusted certificates.
const std::string& AwsClient::State::trust(const AwsRequest& request) {
  static const std::string none;
  if (!request.endpoint.starts_with("https://") || !profile_counts(request)) return none;
  std::call_once(has_ca_bundle, [this] { ca_bundle = aws_ca_bundle(settings); });
  return ca_bundle;
}

Exchange AwsClient::State::exchange_of(const AwsRequest& request, const std::optional<AwsCredentials>& credentials) {
  Exchange exchange{.method = request.method,
                    .url = request.endpoint + request.path,
                    .headers = request.headers,
                    .body = request.body,
                    .connect_timeout = limits.connect_timeout,
                    .stall_timeout = limits.stall_timeout,
                    .slowest_rate = limits.slowest_rate,
                    .follow_redirects = request.follow_redirects,
                    .stop_on_signal = limits.stop_on_signal,
                    .fresh = !request.call_again,
                    .ca_bundle = trust(request),
                    .sink = request.sink};
  if (request.error_in_success) {  // the answer begins before the work, and little of it comes until that is done
    exchange.whole_timeout = kLongestWork;
    exchange.slowest_rate = 0;
  }
  if (!credentials) return exchange;
  const EndpointParts endpoint = parts_of_endpoint(request.endpoint);
  const std::string path = encode_path(endpoint.path + request.path), query = encode_query(request.query);
  exchange.url = endpoint.origin + path + (query.empty() ? "" : "?" + query);
  exchange.headers = signed_headers(request, path, query, *credentials);
  return exchange;
}

// From the Date header. True if our clock is so far off that signatures fail for it.
bool AwsClient::State::learn_skew(const AwsAnswer& answer) {
  const std::time_t theirs = ::curl_getdate(answer.header("date").c_str(), nullptr);
  if (theirs < 0) return false;
  const std::int64_t skew = theirs - std::chrono::system_clock::to_time_t(settings.clock());
  const std::int64_t before = skew_seconds.exchange(skew);
  return std::chrono::seconds(std::abs(skew - before)) > kTolerableSkew;
}

// Whether the next try has a better chance.
bool AwsClient::State::make_good(const AwsError::Facts& facts, const AwsAnswer& answer,
                                 const std::optional<AwsCredentials>& used) {
  if (facts.problem == AwsProblem::throttled || facts.problem == AwsProblem::transient) return true;
  if (!used) return false;
  if ((facts.problem == AwsProblem::clock_skew || may_mean_skew(facts)) && learn_skew(answer)) return true;
  if (facts.problem != AwsProblem::expired_credentials) return false;
  identity->refuse(*used);
  const AwsCredentials fresh = identity->credentials();
  return fresh.session_token != used->session_token || fresh.access_key != used->access_key;
}

AwsClient::AwsClient(AwsService service, AwsSettings settings, AwsLimits limits, std::shared_ptr<AwsIdentity> identity)
    : state_(std::make_unique<State>(service, std::move(settings), limits, std::move(identity))) {
  if (limits.attempts > 0) return;
  const auto chosen = parse_integer(state_->settings.environment("AWS_MAX_ATTEMPTS").value_or(""));
  state_->limits.attempts = static_cast<int>(std::clamp<std::int64_t>(chosen.value_or(kUsualAttempts), 1, 100));
}
AwsClient::~AwsClient() = default;

const AwsSettings& AwsClient::settings() const { return state_->settings; }

AwsAnswer AwsClient::call(const AwsRequest& request) {
  DTRAIN_CHECK(!request.sink, "a call with a sink cannot be repeated");
  for (Tries tries(*this);;) {
    if (auto answer = tries.attempt(request)) return std::move(*answer);
  }
}

std::optional<AwsAnswer> AwsClient::Tries::attempt(const AwsRequest& request) {
  State& state = *client_.state_;
  std::optional<AwsCredentials> credentials;
  if (request.sign) credentials = state.identity->credentials();
  ExchangeResult result = state.connections.exchange(state.exchange_of(request, credentials));
  const bool succeeded = result.failure.empty() && result.answer.status / 100 == 2;
  if (succeeded && !request.error_in_success) return std::move(result.answer);
  AwsError::Facts facts =
      result.failure.empty() ? facts_of(result.answer) : facts_of_failure(result.failure, problem_of(result));
  if (succeeded && facts.code.empty()) return std::move(result.answer);
  facts.by_profile = profile_counts(request);
  const bool may_have_happened = facts.problem == AwsProblem::transient;
  const bool mended = state.make_good(facts, result.answer, credentials) && (request.call_again || !may_have_happened);
  give_up_or_pause(request, std::move(facts), result.answer, mended);
  return std::nullopt;
}

void AwsClient::Tries::failed(const AwsRequest& request, const std::string& why) {
  give_up_or_pause(request, facts_of_failure(why), {}, true);
}

void AwsClient::Tries::give_up_or_pause(const AwsRequest& request, AwsError::Facts facts, const AwsAnswer& answer,
                                        bool mended) {
  const AwsLimits& limits = client_.state_->limits;
  ++failed_;
  const auto pause = pause_after(failed_, facts.problem, answer, limits);
  const bool too_late = limits.until && std::chrono::steady_clock::now() + pause >= *limits.until;
  if (!mended || failed_ >= limits.attempts || too_late) {
    facts.tries = failed_;
    const std::string address = shown_url(request.endpoint + request.path);
    throw error_of(request.purpose.empty() ? fmt::format("{} {}", request.method, address) : request.purpose,
                   std::move(facts));
  }
  pause_between_tries(pause, limits);
}

}  // namespace dtrain::net
