#include "elastic/agent/admission_check.hpp"

#include <gtest/gtest.h>

#include <dtrain/base/hash.hpp>

#include "elastic/temporary_folder.hpp"

namespace dtrain::elastic {
namespace {

class PreparedHost : public testing::Test {
 protected:
  // The answer of a host whose success file has this text, where the command is `exit 0`.
  AdmissionCheckResult::Prepare answer_with(const std::string& success_file) {
    write_in_place(prepare_success_file(folder_.path(), "h4"), success_file);
    net::Loop loop;
    AdmissionCheck check(loop, {.host = "h4",
                                .job_folder = folder_.path(),
                                .environment = {"PATH=/usr/bin:/bin"},
                                .folder = folder_.path(),
                                .mark = "DTRAIN_TEST_MARK=admission",
                                .check = {},
                                .check_input = {}});
    AdmissionCheckResult::Prepare prepare = AdmissionCheckResult::Prepare::none;
    check.run({.prepare = "exit 0"}, [&](const AdmissionCheckResult& result) {
      EXPECT_EQ(result.failure, "");
      prepare = result.prepare;
      loop.stop();
    });
    loop.run();
    return prepare;
  }

  const TemporaryFolder folder_;
};

TEST_F(PreparedHost, HasAFileMadeByHandWhateverIsInIt) {
  for (const char* text : {"", "done", "[]", "{}", R"({"schema":"dtrain.prepared/1"})"}) {
    EXPECT_EQ(answer_with(text), AdmissionCheckResult::Prepare::by_hand) << text;
  }
}

TEST_F(PreparedHost, IsPreparedAgainForAnotherCommand) {
  const auto record = [](const std::string& hash) {
    return Json::object({{"schema", "dtrain.prepared/1"}, {"command_sha256", hash}}).dump();
  };
  EXPECT_EQ(answer_with(record(sha256_hex(bytes_of("exit 1")))), AdmissionCheckResult::Prepare::ran);
  EXPECT_EQ(answer_with(record(sha256_hex(bytes_of("exit 0")))), AdmissionCheckResult::Prepare::earlier);
  EXPECT_EQ(answer_with(R"({"schema":"dtrain.prepared/1","command_sha256":7})"), AdmissionCheckResult::Prepare::ran);
}

}  // namespace
}  // namespace dtrain::elastic
