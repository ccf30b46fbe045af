#include "data_answers.hpp"

#include <gtest/gtest.h>

#include <dtrain/base/files.hpp>
#include <dtrain/data/record.hpp>
#include <dtrain/net/objects.hpp>

#include "common/far_settings.hpp"
#include "common/set_variable.hpp"
#include "common/temporary_folder.hpp"

namespace dtrain::board {
namespace {

TEST(DataOfARun, HasNoNamesOfClassesWhereItsFilesContradictEachOther) {
  const TemporaryFolder folder;
  for (const char* name : {"a", "b"}) {
    data::RecordWriter writer(folder / (std::string(name) + ".rec"));
    writer.add(0, 0, bytes_of("no picture"));
    writer.finish();
  }
  write_file_atomic(folder / "a.pack.json", R"({"classes": ["cat"]})");
  write_file_atomic(folder / "b.pack.json", R"({"classes": ["owl"]})");
  const std::string a = folder / "a.rec", both = a + "," + std::string(folder / "b.rec");
  const auto answer_of = [](const std::string& files) { return data_of({"", "data-train = \"" + files + "\"\n"}); };
  const Json one = answer_of(a), contradiction = answer_of(both);
  EXPECT_EQ(one.at("classes").as_array().at(0).at("name").as_string(), "cat");
  EXPECT_EQ(one.at("warning").as_string(), "");
  EXPECT_EQ(contradiction.at("records").as_number(), 2);
  EXPECT_EQ(contradiction.at("classes").as_array().at(0).at("name").as_string(), "");
  EXPECT_NE(contradiction.at("warning").as_string().find("b.rec: class 0 is \"owl\", but in "), std::string::npos);
}

TEST(DataOfARun, ShowsNoSecretOfAUrl) {
  const TemporaryFolder folder;
  const SetVariable cache("XDG_CACHE_HOME", folder.path().string());
  data::RecordWriter writer(folder / "a.rec");
  writer.add(0, 0, bytes_of("no picture"));
  writer.finish();
  const net::TestServer server("s3_server.py");
  net::ObjectStore store(far_settings(server));
  for (const std::string name : {"a.rec", "a.idx"})
    store.put("s3://public/plain/" + name, bytes_of(read_file(folder / name)));
  const std::string secret = server.url("public/plain/a.rec?X-Amz-Signature=hidden");
  const Json answer = data_of({"", "data-train = \"" + secret + "\"\n"});
  EXPECT_EQ(answer.at("records").as_number(), 1);
  EXPECT_EQ(answer.at("files").as_array().at(0).as_string(), server.url("public/plain/a.rec"));
}

}  // namespace
}  // namespace dtrain::board
