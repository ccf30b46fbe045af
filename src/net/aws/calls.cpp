#include <curl/curl.h>
#include <fmt/format.h>

#include <atomic>
#include <map>

#include <dtrain/base/error.hpp>
#include <dtrain/base/mutex.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/net/aws_calls.hpp>

#include "fresh.hpp"
#include "home.hpp"
#include "pause.hpp"
#include "problem.hpp"
#include "sigv4.hpp"

namespace dtrain::net {
namespace {

constexpr const char* kForm = "application/x-www-form-urlencoded; charset=utf-8";
constexpr const char* kJson = "application/x-amz-json-1.1";
// The pauses before a fresh resource is looked for again.
constexpr std::chrono::milliseconds kFirstPause{100}, kLongestPause{5'000};
// A listing without another limit ends after this time.
constexpr std::chrono::minutes kLongestListing{60};

// What the way of an answer may take, and what two clocks that are kept by NTP do not differ by.
constexpr std::chrono::seconds kSmallSkew{10};

using Clock = std::chrono::steady_clock;

// The JSON object of an answer; null for an empty answer.
Json object_in(const AwsAnswer& answer, const std::string& call) {
  if (trim(answer.body).empty()) return {};
  const std::string source = "the answer to " + call;
  Json document = Json::parse(answer.body, source);
  if (!document.is_object()) throw DataError(source + " is no JSON object", "check the endpoint (AWS_ENDPOINT_URL)");
  return document;
}

// The texts at the first level of an object.
std::vector<std::string> strings_in(const Json& document) {
  std::vector<std::string> texts;
  if (!document.is_object()) return texts;
  for (const auto& [name, value] : document.as_object()) {
    if (value.is_string()) texts.push_back(value.as_string());
  }
  return texts;
}

}  // namespace

struct AwsCalls::State {
  State(AwsSettings the_settings, AwsLimits the_limits)
      : settings(std::move(the_settings)),
        limits(the_limits),
        patience(limits.until ? *limits.until - Clock::now() : Clock::duration(kLongestListing)),
        region(aws_region(settings)),
        identity(std::make_shared<AwsIdentity>(settings)) {}

  struct Service {
    std::unique_ptr<AwsClient> client;
    std::string endpoint;
  };
  // References stay valid.
  Service& service(const AwsService& wanted);
  AwsAnswer call(const AwsService& wanted, const std::string& action, AwsRequest request);
  // `named`: the values in which the request may name a fresh resource.
  AwsAnswer call_until_seen(const AwsService& wanted, const std::string& action, const AwsRequest& request,
                            const std::vector<std::string>& named);
  void tell(const AwsService& service, const std::string& action, Clock::time_point begin, std::string problem);
  void learn_clock(const AwsAnswer& answer);

  AwsSettings settings;
  AwsLimits limits;
  Clock::duration patience;  // of one listing
  std::string region;
  FreshResources fresh;
  std::shared_ptr<AwsIdentity> identity;
  std::function<void(const CallRecord&)> watcher;
  std::atomic<std::int64_t> skew{0};  // seconds
  Mutex mutex;                        // also serialises the calls of watcher
  std::map<std::string_view, Service> services DTRAIN_GUARDED_BY(mutex);
};

AwsCalls::State::Service& AwsCalls::State::service(const AwsService& wanted) {
  const MutexLock lock(mutex);
  Service& one = services[wanted.name];
  if (!one.client) {
    one.client = std::make_unique<AwsClient>(wanted, settings, limits, identity);
    one.endpoint = aws_endpoint(wanted, region, settings).url;
  }
  return one;
}

void AwsCalls::State::tell(const AwsService& service, const std::string& action, Clock::time_point begin,
                           std::string problem) {
  if (!watcher) return;
  const MutexLock lock(mutex);
  watcher({std::string(service.name), action, Clock::now() - begin, std::move(problem)});
}

// A skew that changes little stays as it is, so that now() does not jump with each answer.
void AwsCalls::State::learn_clock(const AwsAnswer& answer) {
  const std::time_t theirs = ::curl_getdate(answer.header("date").c_str(), nullptr);
  if (theirs < 0) return;
  const std::int64_t measured = theirs - std::chrono::system_clock::to_time_t(settings.clock());
  if (std::abs(measured) < kSmallSkew.count()) {
    skew = 0;
  } else if (std::abs(measured - skew) >= kSmallSkew.count()) {
    skew = measured;
  }
}

AwsAnswer AwsCalls::State::call(const AwsService& wanted, const std::string& action, AwsRequest request) {
  Service& one = service(wanted);
  request.endpoint = one.endpoint;
  request.region = signing_region(wanted, region);
  request.purpose = fmt::format("{} {}", wanted.name, action);
  const auto begin = Clock::now();
  try {
    AwsAnswer answer = one.client->call(request);
    learn_clock(answer);
    tell(wanted, action, begin, {});
    return answer;
  } catch (const AwsError& problem) {
    tell(wanted, action, begin, problem.facts().code.empty() ? "no answer" : problem.facts().code);
    throw;
  }
}

AwsAnswer AwsCalls::State::call_until_seen(const AwsService& wanted, const std::string& action,
                                           const AwsRequest& request, const std::vector<std::string>& named) {
  for (auto pause = kFirstPause;; pause = std::min(pause * 3 / 2, kLongestPause)) {
    try {
      return call(wanted, action, request);
    } catch (const AwsError& problem) {
      const bool too_late = limits.until && Clock::now() + pause >= *limits.until;
      if (too_late || !fresh.may_appear(problem.facts(), named, Clock::now())) throw;
    }
    pause_between_tries(pause, limits);
  }
}

Pages::Pages(const AwsCalls& calls, std::string call)
    : call_(std::move(call)), patience_(calls.patience()), begin_(Clock::now()) {}

void Pages::turn(const std::string& token) {
  if (!tokens_.insert(token).second) {
    throw DataError(fmt::format("{}: the service returned the same page token twice", call_),
                    "check the endpoint (AWS_ENDPOINT_URL), then run the same command again");
  }
  if (Clock::now() - begin_ < patience_) return;
  throw RemoteError(
      fmt::format("{}: {} pages in {} and no end", call_, tokens_.size(), format_duration(Clock::now() - begin_)),
      "give a larger setting 'timeout', or check the endpoint (AWS_ENDPOINT_URL)");
}

AwsProblem problem_of_code(std::string_view code) { return problem_of(400, code); }

AwsError refusal(const std::string& what, const std::string& code, const std::string& message) {
  AwsError::Facts facts;
  facts.problem = problem_of_code(code);
  facts.status = 200;
  facts.code = code;
  facts.message = message;
  return error_of(what, std::move(facts));
}

std::vector<std::pair<std::string, std::string>> details_of(const AwsError& error) {
  const AwsError::Facts& facts = error.facts();
  return {{"cause", std::string(cause_class(facts.problem))},
          {"code", facts.code},
          {"request_id", facts.request_id},
          {"status", std::to_string(facts.status)},
          {"tries", std::to_string(facts.tries)}};
}

AwsCalls::AwsCalls(AwsSettings settings, AwsLimits limits)
    : state_(std::make_unique<State>(std::move(settings), limits)) {}
AwsCalls::~AwsCalls() = default;

const std::string& AwsCalls::region() const { return state_->region; }
std::string AwsCalls::credentials_source() { return state_->identity->credentials().source; }
void AwsCalls::limit_until(std::chrono::steady_clock::time_point until) {
  const MutexLock lock(state_->mutex);
  state_->limits.until = until;
  state_->services.clear();  // each client has the limits that it was made with
}
AwsCalls AwsCalls::after_stop(std::chrono::seconds time) const {
  AwsSettings settings = state_->settings;
  settings.region = state_->region;
  AwsLimits limits = state_->limits;
  limits.stop_on_signal = false;
  limits.until = Clock::now() + time;
  return AwsCalls(std::move(settings), limits);
}
bool AwsCalls::talks_to_another() const { return aws_endpoint(kEc2.service, state_->region, state_->settings).custom; }
std::string AwsCalls::ca_bundle() const { return aws_ca_bundle(state_->settings); }
std::chrono::milliseconds AwsCalls::patience() const {
  return std::chrono::duration_cast<std::chrono::milliseconds>(state_->patience);
}
WallTime AwsCalls::now() const { return state_->settings.clock() + clock_skew(); }
std::chrono::seconds AwsCalls::clock_skew() const { return std::chrono::seconds(state_->skew); }
void AwsCalls::created(const std::string& resource) { state_->fresh.note(resource, Clock::now()); }
void AwsCalls::watch(std::function<void(const CallRecord&)> watcher) { state_->watcher = std::move(watcher); }

Element AwsCalls::query(const QueryApi& api, const std::string& action, std::vector<HttpField> fields, LostReply lost) {
  std::vector<std::string> named;
  for (const HttpField& field : fields) named.push_back(field.second);
  fields.emplace_back("Action", action);
  fields.emplace_back("Version", api.version);
  const std::string body = encode_query(fields);
  const AwsAnswer answer = state_->call_until_seen(api.service, action,
                                                   {.method = "POST",
                                                    .headers = {{"Content-Type", kForm}},
                                                    .body = bytes_of(body),
                                                    .call_again = lost == LostReply::call_again},
                                                   named);
  const std::string source = fmt::format("the answer to {} {}", api.service.name, action);
  Element document = parse_xml(answer.body, source);
  if (document.name != action + "Response") {
    throw DataError(fmt::format("{} is a document <{}>, and not <{}Response>", source, document.name, action),
                    "check the endpoint (AWS_ENDPOINT_URL)");
  }
  return document;
}

std::vector<Element> AwsCalls::query_all(const QueryApi& api, const std::string& action,
                                         const std::vector<HttpField>& fields, std::string_view name) {
  std::vector<Element> all;
  std::string token;
  for (Pages pages(*this, fmt::format("{} {}", api.service.name, action));; pages.turn(token)) {
    std::vector<HttpField> asked = fields;
    if (!token.empty()) asked.emplace_back("NextToken", token);
    const Element answer = query(api, action, std::move(asked));
    for (Element& one : answer.list(name)) all.push_back(std::move(one));
    token = answer.value("nextToken");
    if (token.empty()) return all;
  }
}

Json AwsCalls::json(const JsonApi& api, const std::string& action, const Json& document, LostReply lost) {
  const std::string body = document.dump();
  const AwsAnswer answer =
      state_->call(api.service, action,
                   {.method = "POST",
                    .headers = {{"Content-Type", kJson}, {"X-Amz-Target", fmt::format("{}.{}", api.target, action)}},
                    .body = bytes_of(body),
                    .call_again = lost == LostReply::call_again});
  return object_in(answer, fmt::format("{} {}", api.service.name, action));
}

Json AwsCalls::rest(const AwsService& service, const std::string& method, const std::string& path,
                    const std::vector<HttpField>& query, const Json& document) {
  const std::string body = document.is_null() ? std::string() : document.dump();
  AwsRequest request{.method = method, .path = path, .query = query, .body = bytes_of(body)};
  if (!body.empty()) request.headers.emplace_back("Content-Type", "application/json");
  const std::string action = fmt::format("{} {}", method, path);
  std::vector<std::string> named = strings_in(document);
  for (const std::string& part : split(path, '/')) named.push_back(part);
  for (const HttpField& field : query) named.push_back(field.second);
  const AwsAnswer answer = state_->call_until_seen(service, action, request, named);
  return object_in(answer, fmt::format("{} {}", service.name, action));
}

}  // namespace dtrain::net
