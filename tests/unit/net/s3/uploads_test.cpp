#include <thread>

#include "net/s3/objects.hpp"

namespace dtrain::net {
namespace {

class Uploads : public Objects {};

TEST_F(Uploads, AreUploadedInPartsThatFitTheirChecksum) {
  const std::string content = server_content() + server_content() + server_content();
  EXPECT_EQ(upload(url("plain"), content), 0u);
  const ObjectState state = store().state(url("plain"));
  EXPECT_TRUE(state.checksum.ends_with("-5")) << state.checksum;
  expect_same(read(url("plain")), content);
  EXPECT_EQ(store().compare(url("plain"), state, bytes_of(content)), ContentMatch::same);
  EXPECT_EQ(store().compare(url("plain"), state, bytes_of(damaged(content))), ContentMatch::differs);
}

TEST_F(Uploads, AreComparedAlsoWhenTheirPartsGrew) {
  limits.part_size = 4;
  const std::string content = server_content().substr(0, 1000 * 4 + 5 * 8 + 1);
  upload(url("plain"), content);
  const ObjectState state = store().state(url("plain"));
  EXPECT_TRUE(state.checksum.ends_with("-1006")) << state.checksum;
  EXPECT_EQ(store().compare(url("plain"), state, bytes_of(content)), ContentMatch::same);
  EXPECT_EQ(store().compare(url("plain"), state, bytes_of(damaged(content))), ContentMatch::differs);
}

TEST_F(Uploads, AreNotCalledTheSameWhereNothingSaysWhichBytesAPartHas) {
  const std::string content = server_content() + server_content(), where = url("ignores-part-numbers");
  upload(where, content);
  const ObjectState state = store().state(where);
  EXPECT_EQ(store().compare(where, state, bytes_of(content)), ContentMatch::unknown);
  EXPECT_EQ(store().compare(where, state, bytes_of(damaged(content))), ContentMatch::unknown);
  EXPECT_EQ(store().compare(where, {.size = state.size}, bytes_of(content)), ContentMatch::unknown);
  store().download(where, folder / "got");
  expect_same(read_file(folder / "got"), content);
}

TEST_F(Uploads, AreUploadedToAServerThatIsBusyOnce) {
  upload(url("busy_put"), server_content());
  expect_same(read(url("busy_put")), server_content());
}

TEST_F(Uploads, AreThereEvenIfTheLastAnswerOfAnUploadIsLost) {
  upload(url("lost_answer"), server_content());
  expect_same(read(url("lost_answer")), server_content());
}

TEST_F(Uploads, AreKnownByTheirETagWhereTheServerKeepsNoChecksums) {
  const std::string before = server_content() + server_content(), after = damaged(before);
  store().put(url("lost_answer_plain"), bytes_of(before));
  upload(url("lost_answer_plain"), after);
  expect_same(read(url("lost_answer_plain")), after);
}

TEST_F(Uploads, AreNotTakenForAnUploadThatTheServerForgot) {
  for (const char* word : {"forgotten", "forgotten_plain"}) {
    const std::string before = server_content() + server_content();
    upload(url(word), before);
    const std::string text = error_of([&] { upload(url(word), damaged(before)); });
    EXPECT_TRUE(holds(text, "NoSuchUpload")) << text;
    expect_same(read(url(word)), before);
  }
}

TEST_F(Uploads, AreAskedForAgainWhenASuccessHoldsAnError) {
  upload(url("fails_twice_at_last"), server_content());
  expect_same(read(url("fails_twice_at_last")), server_content());
}

TEST_F(Uploads, AreWaitedForWhileTheServerPutsThemTogether) {
  limits.tries.attempts = 1;
  limits.tries.stall_timeout = std::chrono::seconds(1);
  upload(url("slow_at_last"), server_content() + server_content());
  expect_same(read(url("slow_at_last")), server_content() + server_content());
}

TEST_F(Uploads, KeepTheirPartsForTheNextUploadWhenTheServerFailsAtTheEnd) {
  limits.tries.attempts = 2;
  const std::string content = server_content() + server_content(), where = "s3://kept/fails_twice_at_last/x";
  const std::string text = error_of([&] { upload(where, content); });
  EXPECT_TRUE(holds(text, "InternalError") && holds(text, "(2 tries)")) << text;
  EXPECT_EQ(fragments("kept"), 1u);
  EXPECT_EQ(upload(where, content), content.size());
  expect_same(read(where), content);
  EXPECT_EQ(fragments("kept"), 0u);
}

TEST_F(Uploads, LeaveUnfinishedUploadsOfOtherProgramsAlone) {
  for (const char* bucket : {"others", "unsaid-others"}) {
    const std::string path = std::string(bucket) + "/x", where = "s3://" + path;
    const std::string other =
        parse_upload_id(ask("POST", path, {{"uploads", ""}}, {{"x-amz-checksum-algorithm", "CRC32"}}));
    ask("PUT", path, {{"partNumber", "1"}, {"uploadId", other}}, {}, server_content());
    const std::string content = server_content() + server_content();
    EXPECT_EQ(upload(where, content), 0u);
    expect_same(read(where), content);
    EXPECT_EQ(fragments(bucket), 1u);
  }
}

TEST_F(Uploads, LeaveNoFragmentWhenAnUploadFails) {
  const std::string content = server_content() + server_content();
  for (const char* word : {"denied_part", "fails_at_last"}) {
    const std::string where = "s3://failing/" + std::string(word) + "/x";
    error_of([&] { upload(where, content); });
    EXPECT_EQ(fragments("failing"), 0u);
    EXPECT_TRUE(keys(where).empty());
  }
}

TEST_F(Uploads, AreGoneWhenAnUploadIsGivenUp) {
  {
    ObjectUpload given_up(store(), "s3://given-up/x");
    given_up.write(bytes_of(server_content()));
  }
  EXPECT_EQ(fragments("given-up"), 0u);
  EXPECT_TRUE(keys("s3://given-up/").empty());
}

TEST_F(Uploads, UseThePartsThatAKilledUploadLeft) {
  for (const std::string bucket : {"killed", "unsaid-killed"}) {
    const std::string where = "s3://" + bucket + "/x", content = server_content() + server_content();
    auto killed = std::make_unique<ObjectUpload>(store(), where);  // never ended, as by kill -9
    killed->write(bytes_of(content));
    const auto parts = [&] {
      std::size_t count = 0;
      for (const UploadEntry& begun : parse_uploads(ask("GET", bucket + "/", {{"uploads", ""}}))) {
        count += parse_parts(ask("GET", bucket + "/x", {{"uploadId", begun.id}})).parts.size();
      }
      return count;
    };
    while (parts() < content.size() / kSmallPart) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    EXPECT_GE(upload(where, content), kSmallPart);
    expect_same(read(where), content);
    EXPECT_EQ(fragments(bucket), 0u);
  }
}

}  // namespace
}  // namespace dtrain::net
