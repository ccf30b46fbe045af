#include "config/checks/missing_records.hpp"

#include <gtest/gtest.h>

#include "common/temporary_folder.hpp"

namespace dtrain::config {
namespace {

TEST(MissingRecords, AreMistypedWhereOthersOfTheirSetAreThere) {
  const TemporaryFolder folder;
  for (const char* name : {"shapes_train.rec", "shapes_val.rec", "shapes_val.idx"})
    write_file_atomic(folder / name, "");
  const std::string val = (folder / "shapes_val.rec").string();
  EXPECT_EQ(hint_of_missing_records(folder / "shapes_vl.rec"), "did you mean " + val + "?");
  EXPECT_EQ(hint_of_missing_records(folder / "shapes_vl"), "did you mean " + val + "?");
  EXPECT_EQ(hint_of_missing_records(folder / "other.rec"),
            "the record files beside it are " + (folder / "shapes_train.rec").string() + ", " + val);
}

TEST(MissingRecords, OfAPublishedSetAreMadeByPrepare) {
  const TemporaryFolder folder;
  const auto command = [&](const std::string& name) {
    return "make it with `dtrain data prepare " + name + " --out " + (folder / "").parent_path().string() +
           "`, or from your own pictures with `dtrain data pack`";
  };
  EXPECT_EQ(hint_of_missing_records(folder / "shapes_train.rec"), command("shapes"));
  EXPECT_EQ(hint_of_missing_records(folder / "nope.rec"), command("NAME"));  // no shell reads it as another command
  write_file_atomic(folder / "cifar_train.rec", "");
  EXPECT_EQ(hint_of_missing_records(folder / "cifar10_train.rec"), command("cifar10"));
}

}  // namespace
}  // namespace dtrain::config
