// Signed calls to AWS: who we are (credentials), where the service is (region, endpoint), and calls that are signed by
// hand, retried and explained. A service is data (AwsService), so a further one needs no further code here.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dtrain/base/error.hpp>
#include <dtrain/base/files.hpp>
#include <dtrain/base/mutex.hpp>

namespace dtrain::net {

using WallTime = std::chrono::system_clock::time_point;
// The value of an environment variable; nullopt: it is not set.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;
Environment process_environment();

struct AwsCredentials {
  std::string access_key, secret_key, session_token{};  // never to be printed; the token may be empty
  std::optional<WallTime> expires{};                    // nullopt: never
  std::string source{};                                 // for people: "environment", "profile x", ...
};

// The JSON form in which they travel between processes, and back. Throws DataError.
std::string credentials_text(const AwsCredentials& credentials);
AwsCredentials credentials_from(std::string_view text, std::string source);

// Credentials that another process resolves and hands over, again and again before they expire. Safe for concurrent
// use.
class DelegatedCredentials {
 public:
  void take(AwsCredentials credentials);
  std::optional<AwsCredentials> latest() const;  // nullopt: none came yet

 private:
  mutable Mutex mutex_;
  std::optional<AwsCredentials> latest_ DTRAIN_GUARDED_BY(mutex_);
};

// What a person said; what is empty comes from the environment, then from the files in ~/.aws.
struct AwsSettings {
  std::string profile, region, endpoint_url;
  Environment environment = process_environment();
  std::function<WallTime()> clock = [] { return std::chrono::system_clock::now(); };
  // Go before all other sources as long as they live by `clock`, and then behind them.
  std::shared_ptr<const DelegatedCredentials> delegated{};
};

// No source gives credentials at the moment: a sign-in or a command whose keys have ended, or nothing at all. A person
// can mend that while a program runs, which asks again.
class NoCredentials : public UsageError {
 public:
  using UsageError::UsageError;
};

// Where credentials come from, in the order of the AWS SDKs: environment, profile files with the roles and commands
// that they name and `aws sso login`, web identity, container, instance (IMDSv2). Safe for concurrent use; resolves
// when first asked and again 15 minutes before they expire.
class AwsIdentity {
 public:
  explicit AwsIdentity(AwsSettings settings);
  ~AwsIdentity();
  // Throws NoCredentials that lists every source that was tried and why it had none, or says why one that was chosen
  // gives none, UsageError for settings that cannot be meant, and AwsError. Blocks for seconds at most.
  AwsCredentials credentials();
  // A service refused these as expired: the next credentials() asks the sources again.
  void refuse(const AwsCredentials& expired);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The region: settings, AWS_REGION, AWS_DEFAULT_REGION, the profile, the instance. Throws UsageError naming these ways.
std::string aws_region(const AwsSettings& settings);
// The same without the instance, and without a call; empty: the user chose none.
std::string chosen_region(const AwsSettings& settings);

struct AwsService {
  std::string_view name;      // in the signature's scope, and the first word of its host
  std::string_view variable;  // AWS_ENDPOINT_URL_<variable>
  // S3 signs the path as it is sent; all others normalise it and encode it a second time.
  bool signs_path_as_sent = false;
  bool is_global = false;  // one for all regions of a partition
};
inline constexpr AwsService kS3{.name = "s3", .variable = "S3", .signs_path_as_sent = true};
inline constexpr AwsService kSts{.name = "sts", .variable = "STS"};

// Scheme, host, port and path, if it has one, without a last slash: "https://s3.eu-west-1.amazonaws.com". `custom`: the
// user chose it, so it may be another service than AWS.
struct AwsEndpoint {
  std::string url;
  bool custom = false;
};
AwsEndpoint aws_endpoint(const AwsService& service, const std::string& region, const AwsSettings& settings);
// The region's partition, as ARNs name it: "aws", "aws-cn".
std::string aws_partition(const std::string& region);
// What the names of AWS's hosts in the region end with: "amazonaws.com", "amazonaws.com.cn".
std::string aws_domain(const std::string& region);
// The file of trusted certificates that the profile names (ca_bundle); empty: none, or AWS_CA_BUNDLE takes its place.
std::string aws_ca_bundle(const AwsSettings& settings);

using HttpField = std::pair<std::string, std::string>;

struct AwsAnswer {
  long status = 0;
  std::vector<HttpField> headers{};                 // names in lower case
  std::string body{};                               // at most 64 MiB
  std::string header(std::string_view name) const;  // lower case; empty: there is none
};

struct AwsRequest {
  std::string method = "GET";
  std::string endpoint{};          // scheme://host[:port][/path]
  std::string path = "/";          // not encoded yet
  std::vector<HttpField> query{};  // not encoded yet, in any order
  std::vector<HttpField> headers{};
  ByteView body{};
  std::string region{};
  bool sign = true;  // false: `path` is sent as it stands, with its query
  // For public objects. A redirect takes headers and body along, so a call that holds a secret follows none; none leads
  // from https to http.
  bool follow_redirects = false;
  // False: where no answer came, or one that leaves open whether it happened, the call is not made again.
  bool call_again = true;
  // The service answers before it has done the work, which may take minutes: the body of a 2xx answer may hold an
  // error, which then counts like any other.
  bool error_in_success = false;
  std::string purpose{};  // what errors say was done; empty: method and URL
  // A 2xx answer's body goes here, piece by piece, instead of AwsAnswer::body. Exceptions pass through.
  std::function<void(const AwsAnswer& head, ByteView piece)> sink{};
};

// What a refusal means for the caller, by the service's code first and the status second.
enum class AwsProblem {
  throttled,            // slow down, then again
  transient,            // the service or the way to it failed: again
  untrusted,            // its certificate is not one of an authority that is trusted here
  expired_credentials,  // ask the sources again, then again
  clock_skew,           // sign with the server's time, then again
  wrong_region,         // the bucket lives elsewhere
  denied,
  not_found,
  precondition,  // If-Match and its like did not hold
  capacity,      // there are no machines of that kind now: another zone, type or market
  quota,         // the account may have no more: only a person can change that
  exists,        // what was to be created is there already
  in_use,        // something else still needs what was to be removed
  guarded,       // termination protection keeps an instance
  credentials,   // these keys are not valid
  bad_request,   // asked for something that cannot be
  other,
};

// One word for people and scripts: capacity, quota, permission, credential, throttle, network, config or bug.
std::string_view cause_class(AwsProblem problem);

class AwsError : public RemoteError {
 public:
  struct Facts {
    AwsProblem problem = AwsProblem::other;
    long status = 0;  // 0: there was no answer
    int tries = 1;
    std::string code;        // the service's word, such as "NoSuchKey"; may be empty
    std::string message;     // the service's sentence, or ours
    std::string request_id;  // may be empty
    std::string region;      // where the bucket lives, when the answer says so
    std::string endpoint;    // scheme and host to go to instead, when the answer says so
    bool by_profile = true;  // false: a public object, for which the AWS profile does not count
  };
  AwsError(const std::string& what, std::string hint, Facts facts)
      : RemoteError(what, std::move(hint)), facts_(std::move(facts)) {}
  const Facts& facts() const { return facts_; }
  std::string_view kind() const override { return "aws"; }

 private:
  Facts facts_;
};

struct AwsLimits {
  int attempts = 0;  // tries in all; 0: AWS_MAX_ATTEMPTS, or 5
  std::chrono::milliseconds first_pause{250}, longest_pause{20'000};
  std::chrono::milliseconds connect_timeout{10'000};
  // A try ends when less than slowest_rate bytes a second came for so long.
  std::chrono::seconds stall_timeout{20};
  std::uint64_t slowest_rate = 1024;
  // No try begins after it.
  std::optional<std::chrono::steady_clock::time_point> until{};
  // False: for work that is still to be done when the process was asked to end, such as a last checkpoint.
  bool stop_on_signal = true;
};

// Calls of one service. Safe for concurrent use; connections are kept and used again.
class AwsClient {
 public:
  // Clients of several services may share one identity, which is then asked once.
  AwsClient(AwsService service, AwsSettings settings, AwsLimits limits = {},
            std::shared_ptr<AwsIdentity> identity = {});
  ~AwsClient();
  const AwsSettings& settings() const;

  // Signs and sends until it succeeds or another try cannot help. Only for calls that may happen twice, and without a
  // sink. Throws AwsError, Stopped after SIGINT or SIGTERM, NoCredentials.
  AwsAnswer call(const AwsRequest& request);
  // The tries of one piece of work, for callers that go on where a try ended.
  class Tries {
   public:
    explicit Tries(AwsClient& client) : client_(client) {}
    // The answer; nullopt after a failure that another try may mend: what could be made good (credentials, clock) is,
    // and it has paused. Throws what no further try mends, and the last failure when there were too many in a row.
    [[nodiscard]] std::optional<AwsAnswer> attempt(const AwsRequest& request);
    // The answer came but is of no use: counts like a failed try.
    void failed(const AwsRequest& request, const std::string& why);
    // Something came: the failures so far count no more.
    void progress() { failed_ = 0; }

   private:
    void give_up_or_pause(const AwsRequest& request, AwsError::Facts facts, const AwsAnswer& answer, bool mended);

    AwsClient& client_;
    int failed_ = 0;
  };

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace dtrain::net
