#include "data_answers.hpp"

#include <gtest/gtest.h>

#include <dtrain/base/files.hpp>
#include <dtrain/data/record.hpp>

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

}  // namespace
}  // namespace dtrain::board
