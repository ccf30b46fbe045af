#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include <dtrain/base/error.hpp>
#include <dtrain/net/objects.hpp>

#include "common/test_server.hpp"
#include "s3/list.hpp"

namespace dtrain::net {
namespace {

constexpr std::uint64_t kPart = 64 << 10;

class Objects : public testing::Test {
 protected:
  Objects() {
    settings.environment = [this](const std::string& name) -> std::optional<std::string> {
      const auto found = variables.find(name);
      return found == variables.end() ? std::nullopt : std::optional(found->second);
    };
    settings.endpoint_url = server->url("");
    limits.part_size = kPart;
    limits.tries.first_pause = std::chrono::milliseconds(1);
    limits.tries.stall_timeout = std::chrono::seconds(2);
  }
  ~Objects() override {
    if (!folder_.empty()) std::filesystem::remove_all(folder_);
  }
  const Path& folder() {
    if (folder_.empty()) {
      std::string name = testing::TempDir() + "dtrain-objects-XXXXXX";
      folder_ = ::mkdtemp(name.data());
    }
    return folder_;
  }
  static void SetUpTestSuite() { server = std::make_unique<TestServer>("s3_server.py"); }
  static void TearDownTestSuite() { server.reset(); }

  // A URL of this test's own; the first word of its key says how the server misbehaves.
  static std::string url(const std::string& word, const std::string& bucket = "bucket") {
    return "s3://" + bucket + "/" + word + "/" + testing::UnitTest::GetInstance()->current_test_info()->name();
  }
  ObjectStore& store() {
    if (!store_) store_ = std::make_unique<ObjectStore>(settings, limits);
    return *store_;
  }
  std::string read(const std::string& where) {
    const ObjectState state = store().state(where);
    std::string content(state.size, '?');
    store().read(where, state, 0, std::as_writable_bytes(std::span(content)));
    return content;
  }
  // Without printing so many bytes.
  static void expect_same(const std::string& found, const std::string& wanted) {
    const auto differ = std::mismatch(found.begin(), found.end(), wanted.begin(), wanted.end());
    EXPECT_TRUE(found == wanted) << "they differ at byte " << differ.first - found.begin();
  }
  void expect_comes_through(const std::string& word) {
    const std::string content = server_content();
    store().put(url(word), bytes_of(content));
    expect_same(read(url(word)), content);
  }
  std::string error_of(const std::function<void()>& act) {
    try {
      act();
    } catch (const Error& error) {
      return std::string(error.what()) + " | " + error.hint();
    }
    ADD_FAILURE() << "nothing was thrown";
    return {};
  }
  std::vector<std::string> keys(const std::string& where) {
    std::vector<std::string> found;
    store().list(where, [&](const ObjectEntry& entry) { found.push_back(entry.key); });
    return found;
  }
  int gets(const std::string& word) {
    ObjectStore plain(settings, limits);
    const std::string counter = server->url("_count" + url(word).substr(4));
    const ObjectState state{.size = 1, .etag = "", .checksum = ""};
    std::byte digit{};
    plain.read(counter, state, 0, {&digit, 1});
    return static_cast<int>(digit) - '0';
  }
  std::uint64_t upload(const std::string& where, const std::string& content) {
    ObjectUpload upload(store(), where);
    upload.write(bytes_of(content));
    upload.finish();
    return upload.reused();
  }
  std::size_t fragments(const std::string& bucket) {
    AwsClient client(kS3, settings);
    return parse_uploads(client
                             .call({.endpoint = settings.endpoint_url.substr(0, settings.endpoint_url.size() - 1),
                                    .path = "/" + bucket + "/",
                                    .query = {{"uploads", ""}},
                                    .region = "us-east-1"})
                             .body)
        .size();
  }

  static inline std::unique_ptr<TestServer> server;
  std::map<std::string, std::string> variables{
      {"AWS_ACCESS_KEY_ID", "key"}, {"AWS_SECRET_ACCESS_KEY", "secret"}, {"AWS_REGION", "us-east-1"}};
  AwsSettings settings;
  ObjectLimits limits;

 private:
  Path folder_;
  std::unique_ptr<ObjectStore> store_;
};

bool holds(const std::string& text, std::string_view part) { return text.find(part) != text.npos; }

TEST_F(Objects, ComeBackAsTheyWerePut) { expect_comes_through("plain"); }

TEST_F(Objects, HaveKeysWithAllKindsOfCharacters) {
  for (const char* key :
       {"a=b", "a+b", "a:b", "a*b", "(a)", "it's", "a@b", "\xc3\xa9", "a b", "a%2Fb", "a//b", "a~b/../c"}) {
    expect_comes_through(key);
  }
}

TEST_F(Objects, AreSignedForASessionToo) {
  variables["AWS_SESSION_TOKEN"] = "a/token+with=signs";
  expect_comes_through("session");
}

TEST_F(Objects, NeedNoRegionAtAServerThatIsNamed) {
  variables.erase("AWS_REGION");
  variables["AWS_EC2_METADATA_DISABLED"] = "true";
  expect_comes_through("plain");
}

TEST_F(Objects, AreReadWithoutASignatureFromHttp) {
  store().put("s3://public/plain.bin", bytes_of(server_content()));
  expect_same(read(server->url("public/plain.bin")), server_content());
}

TEST_F(Objects, MayBeEmpty) {
  store().put(url("plain"), {});
  EXPECT_EQ(read(url("plain")), "");
}

TEST_F(Objects, AreNamedWhenTheyAreNotThere) {
  const std::string text = error_of([&] { read(url("plain")); });
  EXPECT_TRUE(holds(text, url("plain"))) << text;
}

TEST_F(Objects, ComeThroughAServerThatIsBusyOnce) { expect_comes_through("slow-down-once"); }
TEST_F(Objects, ComeThroughAServerThatFailsOnce) { expect_comes_through("internal-once"); }
TEST_F(Objects, ComeThroughAProxysPageOfTrouble) { expect_comes_through("busy-page-once"); }
TEST_F(Objects, ComeThroughAResetInMidBody) { expect_comes_through("reset-once"); }
TEST_F(Objects, ComeThroughABodyThatIsCutShort) { expect_comes_through("truncated-once"); }
TEST_F(Objects, ComeThroughAnAnswerThatIsTooShort) { expect_comes_through("short-once"); }
TEST_F(Objects, ComeThroughASlowDrip) { expect_comes_through("drip-once"); }

TEST_F(Objects, GoOnWhereABrokenTryEnded) {
  limits.part_size = 1 << 20;
  std::uint64_t came = 0;
  store().put(url("truncated-once"), bytes_of(server_content()));
  const ObjectState state = store().state(url("truncated-once"));
  std::string content(state.size, '?');
  store().read(url("truncated-once"), state, 0, std::as_writable_bytes(std::span(content)),
               [&](std::uint64_t bytes) { came += bytes; });
  EXPECT_EQ(came, state.size);
  EXPECT_EQ(gets("truncated-once"), 2);
}

TEST_F(Objects, GiveUpOnAServerThatIsAlwaysBusyAndSayHowOftenTheyTried) {
  store().put(url("slow-down"), bytes_of("x"));
  const std::string text = error_of([&] { read(url("slow-down")); });
  EXPECT_TRUE(holds(text, "SlowDown") && holds(text, "(5 tries)")) << text;
}

TEST_F(Objects, GiveUpOnAServerThatSendsNothing) {
  store().put(url("short"), bytes_of(server_content()));
  const std::string text = error_of([&] { read(url("short")); });
  EXPECT_TRUE(holds(text, "ended early, after 0 of")) << text;
}

TEST_F(Objects, AskOnceWhenTheyAreDenied) {
  store().put(url("denied"), bytes_of("x"));
  const std::string text = error_of([&] { read(url("denied")); });
  EXPECT_TRUE(holds(text, "AccessDenied")) << text;
  EXPECT_EQ(gets("denied"), 1);
}

TEST_F(Objects, AreSignedWithTheServersTimeWhenOurClockIsOff) { expect_comes_through("skewed"); }

TEST_F(Objects, AreFollowedToTheirRegion) {
  store().put(url("plain", "elsewhere"), bytes_of("far away"));
  EXPECT_EQ(read(url("plain", "elsewhere")), "far away");
}

TEST_F(Objects, AreReadWithFreshCredentialsAfterOldOnesExpired) {
  store().put(url("plain"), bytes_of("x"));
  std::atomic<int> asked = 0;
  settings.environment = [&, before = settings.environment](const std::string& name) -> std::optional<std::string> {
    if (name != "AWS_SESSION_TOKEN") return before(name);
    return asked++ == 0 ? "old" : "new";
  };
  ObjectStore other(settings, limits);
  EXPECT_EQ(other.state(url("plain")).size, 1u);
  EXPECT_EQ(asked, 2);
}

TEST_F(Objects, SayThatCredentialsExpiredWhenThereAreNoOthers) {
  variables["AWS_SESSION_TOKEN"] = "old";
  const std::string text = error_of([&] { store().put(url("plain"), bytes_of("x")); });
  EXPECT_TRUE(holds(text, "ExpiredToken") && holds(text, "get new credentials")) << text;
}

TEST_F(Objects, NameBothETagsWhenTheyWereReplaced) {
  for (const char* word : {"replaced", "replaced-unsaid"}) {
    store().put(url(word), bytes_of(server_content()));
    const ObjectState before = store().state(url(word));
    const std::string text = error_of([&] { read(url(word)); });
    const ObjectState after = store().state(url(word));
    EXPECT_NE(before.etag, after.etag);
    EXPECT_TRUE(holds(text, before.etag) && holds(text, after.etag)) << text;
  }
}

TEST_F(Objects, AreRefusedFromAServerWithoutRanges) {
  store().put(url("no-ranges"), bytes_of(server_content()));
  const std::string text = error_of([&] { read(url("no-ranges")); });
  EXPECT_TRUE(holds(text, "does not send parts")) << text;
}

TEST_F(Objects, AreDownloadedWholeOrNotAtAll) {
  const Path to = folder() / "got";
  store().put(url("plain"), bytes_of(server_content()));
  store().download(url("plain"), to);
  expect_same(read_file(to), server_content());
  EXPECT_FALSE(std::filesystem::exists(folder() / "got.part.from"));
  error_of([&] { store().download(url("plain") + "-none", folder() / "none"); });
  EXPECT_FALSE(std::filesystem::exists(folder() / "none"));
}

TEST_F(Objects, AreDownloadedFromWhereAnEarlierTryEnded) {
  limits.connections = 1;
  const std::string content = server_content() + server_content();
  store().put(url("replaced"), bytes_of(content));  // the second GET is the last that this object answers
  error_of([&] { store().download(url("replaced"), folder() / "got"); });
  store().put(url("replaced"), bytes_of(content));
  std::uint64_t lowest = content.size();
  std::mutex mutex;
  store().download(url("replaced"), folder() / "got", [&](std::uint64_t done, std::uint64_t) {
    const std::lock_guard lock(mutex);
    lowest = std::min(lowest, done);
  });
  EXPECT_GT(lowest, kPart);
  expect_same(read_file(folder() / "got"), content);
}

TEST_F(Objects, AreListedOverSeveralPagesByPrefix) {
  std::vector<std::string> wanted;
  for (const char* name : {"a b", "a&b", "a+b", "c", "d", "e", "\xc3\xa9"}) {
    store().put("s3://listed/in/" + std::string(name), bytes_of("x"));
    wanted.push_back("in/" + std::string(name));
  }
  store().put("s3://listed/other", bytes_of("x"));
  std::sort(wanted.begin(), wanted.end());
  EXPECT_EQ(keys("s3://listed/in/"), wanted);
}

TEST_F(Objects, MayBeRemovedTwice) {
  store().put(url("plain"), bytes_of("x"));
  store().remove(url("plain"));
  store().remove(url("plain"));
  EXPECT_TRUE(keys(url("plain")).empty());
}

TEST_F(Objects, AreUploadedInPartsThatFitTheirChecksum) {
  const std::string content = server_content() + server_content() + server_content();
  EXPECT_EQ(upload(url("plain"), content), 0u);
  const ObjectState state = store().state(url("plain"));
  EXPECT_TRUE(state.checksum.ends_with("-5")) << state.checksum;
  expect_same(read(url("plain")), content);
  EXPECT_TRUE(store().checks(url("plain"), state, bytes_of(content)));
  std::string damaged = content;
  damaged[200'000] ^= 1;
  EXPECT_FALSE(store().checks(url("plain"), state, bytes_of(damaged)));
}

TEST_F(Objects, AreUploadedToAServerThatIsBusyOnce) {
  upload(url("busy_put"), server_content());
  expect_same(read(url("busy_put")), server_content());
}

TEST_F(Objects, AreThereEvenIfTheLastAnswerOfAnUploadIsLost) {
  upload(url("lost_answer"), server_content());
  expect_same(read(url("lost_answer")), server_content());
}

TEST_F(Objects, LeaveNoFragmentWhenAnUploadFails) {
  const std::string content = server_content() + server_content();
  for (const char* word : {"denied_part", "fails_at_last"}) {
    const std::string where = "s3://failing/" + std::string(word) + "/x";
    error_of([&] { upload(where, content); });
    EXPECT_EQ(fragments("failing"), 0u);
    EXPECT_TRUE(keys(where).empty());
  }
}

TEST_F(Objects, AreGoneWhenAnUploadIsGivenUp) {
  {
    ObjectUpload given_up(store(), "s3://given-up/x");
    given_up.write(bytes_of(server_content()));
  }
  EXPECT_EQ(fragments("given-up"), 0u);
  EXPECT_TRUE(keys("s3://given-up/").empty());
}

TEST_F(Objects, UseThePartsThatAKilledUploadLeft) {
  const std::string where = "s3://killed/x", content = server_content() + server_content();
  auto killed = std::make_unique<ObjectUpload>(store(), where);  // never ended, as by kill -9
  killed->write(bytes_of(content));
  while (fragments("killed") == 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_GE(upload(where, content), kPart);
  expect_same(read(where), content);
  EXPECT_EQ(fragments("killed"), 0u);
}

}  // namespace
}  // namespace dtrain::net
