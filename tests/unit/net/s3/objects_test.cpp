#include <atomic>
#include <mutex>
#include <thread>

#include "net/s3/objects.hpp"

namespace dtrain::net {
namespace {

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

TEST_F(Objects, AreNoBuckets) {
  store().put(url("plain"), bytes_of("x"));
  for (const char* bucket : {"s3://bucket", "s3://bucket/"}) {
    for (const auto& act : std::initializer_list<std::function<void()>>{
             [&] { store().state(bucket); }, [&] { (void)store().find(bucket); },
             [&] { store().download(bucket, folder / "a"); }, [&] { upload(bucket, "x"); }}) {
      const std::string text = error_of(act);
      EXPECT_TRUE(holds(text, "names no object | write s3://BUCKET/KEY")) << text;
    }
  }
  EXPECT_FALSE(std::filesystem::exists(folder / "a"));
}

TEST_F(Objects, ComeThroughAServerThatIsBusyOnce) { expect_comes_through("slow-down-once"); }
TEST_F(Objects, ComeThroughAServerThatFailsOnce) { expect_comes_through("internal-once"); }
TEST_F(Objects, ComeThroughAProxysPageOfTrouble) { expect_comes_through("busy-page-once"); }
TEST_F(Objects, ComeThroughAResetInMidBody) { expect_comes_through("reset-once"); }
TEST_F(Objects, ComeThroughABodyThatIsCutShort) { expect_comes_through("truncated-once"); }
TEST_F(Objects, ComeThroughAnAnswerThatIsTooShort) { expect_comes_through("short-once"); }
TEST_F(Objects, ComeThroughASlowDrip) {
  limits.tries.stall_timeout = std::chrono::seconds(2);
  expect_comes_through("drip-once");
}

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

TEST_F(Objects, AreLookedAtWithoutTakingAllOfThemFromAServerWithoutRanges) {
  const std::string where = server->url("public/huge-without-ranges/x");
  const ObjectState state = store().state(where);
  EXPECT_EQ(state.size, std::uint64_t{1} << 40);
  EXPECT_EQ(state.etag, "\"huge\"");
  std::byte first{};
  const std::string text = error_of([&] { store().read(where, state, 0, {&first, 1}); });
  EXPECT_TRUE(holds(text, "does not send parts") && holds(text, "download it first")) << text;
}

TEST_F(Objects, AreAskedForOnceWhereAnAnswerIsLongerThanAnyShouldBe) {
  const std::string origin = settings.endpoint_url.substr(0, settings.endpoint_url.size() - 1);
  try {
    AwsClient(kS3, settings).call({.endpoint = origin, .path = "/public/huge-without-ranges/x", .sign = false});
    ADD_FAILURE() << "it took a tebibyte";
  } catch (const AwsError& error) {
    EXPECT_EQ(error.facts().tries, 1) << error.what();
  }
}

TEST_F(Objects, AreDownloadedWholeOrNotAtAll) {
  const Path to = folder / "got";
  store().put(url("plain"), bytes_of(server_content()));
  store().download(url("plain"), to);
  expect_same(read_file(to), server_content());
  EXPECT_FALSE(std::filesystem::exists(folder / "got.part.from"));
  error_of([&] { store().download(url("plain") + "-none", folder / "none"); });
  EXPECT_FALSE(std::filesystem::exists(folder / "none"));
}

TEST_F(Objects, AreDownloadedFromWhereAnEarlierTryEnded) {
  limits.connections = 1;
  const std::string content = server_content() + server_content();
  store().put(url("replaced"), bytes_of(content));  // the second GET is the last that this object answers
  error_of([&] { store().download(url("replaced"), folder / "got"); });
  store().put(url("replaced"), bytes_of(content));
  std::uint64_t lowest = content.size();
  std::mutex mutex;
  store().download(url("replaced"), folder / "got", [&](std::uint64_t done, std::uint64_t) {
    const std::lock_guard lock(mutex);
    lowest = std::min(lowest, done);
  });
  EXPECT_GT(lowest, kSmallPart);
  expect_same(read_file(folder / "got"), content);
}

TEST_F(Objects, AreDownloadedAnewWhereWhatAnEarlierTryLeftIsGone) {
  limits.connections = 1;
  const std::string content = server_content() + server_content(), where = url("replaced-plain");
  store().put(where, bytes_of(content));
  error_of([&] { store().download(where, folder / "got"); });
  EXPECT_TRUE(holds(read_file(folder / "got.part.from"), "\n10"));  // the first part came
  std::filesystem::remove(folder / "got.part");
  store().put(where, bytes_of(content));
  store().download(where, folder / "got");
  expect_same(read_file(folder / "got"), content);
}

TEST_F(Objects, AreNotHeldInMemoryBeyondTheLimit) {
  store().put(url("plain"), bytes_of("four"));
  store().put(url("boasts"), bytes_of("four"));
  const auto content = [&](const std::string& where, std::uint64_t limit) {
    return store().content(where, store().state(where), limit);
  };
  EXPECT_EQ(content(url("plain"), 4), "four");
  const std::string more = error_of([&] { content(url("plain"), 3); });
  EXPECT_TRUE(holds(more, url("plain") + ": has 4 bytes") && holds(more, "where 3 are the most")) << more;
  const std::string boast = error_of([&] { content(url("boasts"), kLargestDocument); });
  EXPECT_TRUE(holds(boast, "has 300000000000 bytes by what the server states")) << boast;
}

TEST_F(Objects, AreListedOnlyByServersThatSayHowToGoOn) {
  for (const std::string bucket : {"s3://endless/", "s3://tokenless/"}) {
    for (const char* name : {"a", "b", "c", "d"}) store().put(bucket + name, bytes_of("x"));
    const std::string text = error_of([&] { keys(bucket); });
    EXPECT_TRUE(holds(text, "ListBucketResult: the server says that there is more, and not how to go on")) << text;
  }
}

TEST(PartLists, GoOnElsewhereThanTheyBegan) {
  const std::string begin = "<ListPartsResult><IsTruncated>true</IsTruncated>", end = "</ListPartsResult>";
  const std::string page = begin + "<NextPartNumberMarker>2</NextPartNumberMarker>" + end;
  EXPECT_EQ(parse_parts(page, "1").next, "2");
  EXPECT_THROW(parse_parts(page, "2"), DataError);
  EXPECT_THROW(parse_parts(begin + end), DataError);
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

TEST_F(Objects, AreServedBehindAPathOfTheEndpoint) {
  settings.endpoint_url = server->url("storage/v1/s3");
  expect_comes_through("plain");
  EXPECT_EQ(keys(url("plain")).size(), 1u);
}

}  // namespace
}  // namespace dtrain::net
