#include <gtest/gtest.h>

#include <dtrain/base/error.hpp>
#include <dtrain/data/record.hpp>

#include "common/far_settings.hpp"
#include "spec/data_facts.hpp"
#include "train/small_checkpoint.hpp"

namespace dtrain::job {
namespace {

void write_records(const Path& rec, float label) {
  data::RecordWriter writer(rec);
  writer.add(0, label, bytes_of("x"));
  writer.add(1, label, bytes_of("yy"));
  writer.finish();
}

TEST(DataFacts, AreOfEveryFileOfASet) {
  config::TemporaryFolder folder;
  write_records(folder.path() / "p_0.rec", 1);
  write_records(folder.path() / "p_1.rec", 2);
  config::TrainSources sources;
  sources.train = folder.path() / "p";
  const Json facts = data_facts(sources, {}, nullptr);
  EXPECT_EQ(facts.as_array().size(), 2u);
  EXPECT_EQ(check_data_facts(facts).as_array().size(), 2u);
  std::filesystem::remove(folder.path() / "p_1.rec");
  try {
    check_data_facts(facts);
    ADD_FAILURE() << "a missing file passed";
  } catch (const DataError& error) {
    EXPECT_NE(std::string(error.what()).find("p_1.rec: cannot be read"), std::string::npos) << error.what();
  }
}

TEST(DataFacts, AreOfTheCheckpointThatAPrefixNames) {
  config::TemporaryFolder folder;
  write_records(folder.path() / "p.rec", 1);
  config::TrainSources sources;
  sources.train = folder.path() / "p";
  const Path file = train::save_checkpoint({folder.path() / "m/r8", 1}, train::small_checkpoint());
  for (const Path& weights : {folder.path() / "m/r8", folder.path() / "m/r8-0001", file}) {
    const Json facts = data_facts(sources, weights, nullptr);
    ASSERT_EQ(facts.as_array().size(), 2u);
    EXPECT_EQ(facts.as_array()[1].at("path").as_string(), file.string());
    EXPECT_EQ(check_data_facts(facts).as_array().size(), 2u);
  }
  const Path far = "s3://b/w.safetensors#sha256=" + std::string(64, '0');
  EXPECT_EQ(data_facts(sources, far, nullptr).as_array().size(), 1u);
}

TEST(DataFacts, OfAServerWithoutVersionsAreComparedByTheirSize) {
  const net::TestServer server("s3_server.py");
  net::ObjectStore store(far_settings(server));
  const std::string url = "s3://bucket/unversioned/p.rec";
  store.put(url, bytes_of("four"));
  const Json facts = Json::array({Json::object({{"path", url}, {"bytes", 4}, {"etag", ""}})});
  EXPECT_NO_THROW(check_far_facts(facts, store));
  store.put(url, bytes_of("other"));
  try {
    check_far_facts(facts, store);
    ADD_FAILURE() << "another object passed";
  } catch (const DataError& error) {
    EXPECT_NE(std::string(error.what()).find("its size was 4, now it is 5"), std::string::npos) << error.what();
  }
}

TEST(DataFacts, CountTheRecordsOfASetByItsIndexes) {
  config::TemporaryFolder folder;
  write_records(folder.path() / "p_0.rec", 1);
  write_records(folder.path() / "p_1.rec", 2);
  EXPECT_EQ(count_records(folder.path() / "p"), 4u);
  std::filesystem::remove(folder.path() / "p_1.idx");
  EXPECT_EQ(count_records(folder.path() / "p"), std::nullopt);
  EXPECT_EQ(count_records(folder.path() / "nothing"), std::nullopt);
}

}  // namespace
}  // namespace dtrain::job
