#include <fmt/format.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <dtrain/data/loader.hpp>
#include <dtrain/data/record.hpp>

#include "data/temporary_folder.hpp"

namespace dtrain::data {
namespace {

// `count` records whose payloads are "NAME:0", "NAME:1", ...
Path records(const TemporaryFolder& folder, const std::string& name, unsigned count) {
  const Path rec = folder / (name + ".rec");
  RecordWriter writer(rec);
  for (unsigned id = 0; id < count; ++id) writer.add(id, 1, bytes_of(fmt::format("{}:{}", name, id)));
  writer.finish();
  return rec;
}

std::vector<std::string> found(const TemporaryFolder& folder, const std::string& spec) {
  std::vector<std::string> names;
  for (const Path& file : find_records(spec)) names.push_back(file.lexically_relative(folder.path()).string());
  return names;
}

using Names = std::vector<std::string>;

TEST(RecordSet, GoesOnFromFileToFile) {
  TemporaryFolder folder;
  const RecordSet set({records(folder, "a", 2), records(folder, "b", 3)});
  ASSERT_EQ(set.size(), 5u);
  Record record;
  std::string all;
  for (std::size_t i = 0; i < set.size(); ++i) {
    set.read(i, record);
    all += text_of(record.payload);
    all += ' ';
  }
  EXPECT_EQ(all, "a:0 a:1 b:0 b:1 b:2 ");
  EXPECT_EQ(set.place(3), (folder / "b.rec").string() + ": record 1 at byte 36");
}

TEST(FindRecords, TakesANameAsAShellCompletesItBesideAnIndex) {
  TemporaryFolder folder;
  records(folder, "a", 1);
  EXPECT_EQ(found(folder, folder / "a."), Names{"a.rec"});
  expect_error([&] { find_records(folder / "a.idx"); }, "a.idx: is the index of a.rec");
  expect_error([&] { find_records(folder / "b."); }, "b.: no such file");
}

TEST(FindRecords, SaysWhatTheFilesBesideRecordsAre) {
  TemporaryFolder folder;
  for (const char* name : {"a", "b_train", "b_val"}) records(folder, name, 1);
  for (const char* name : {"a.lst", "a.pack.json", "b.pack.json"}) write_file_atomic(folder / name, "text");
  const std::string a = folder / "a", b = folder / "b";
  expect_error([&] { find_records(folder / "a.lst"); }, fmt::format("is the list of a.rec | name that file, or {}", a));
  expect_error([&] { find_records(folder / "a.pack.json"); }, fmt::format("set a holds | name the set: {}", a));
  expect_error([&] { find_records(folder / "b.pack.json"); },
               fmt::format("set b holds | name a split that is there: {0}_train, {0}_val", b));
}

TEST(FindRecords, LeavesBlanksBehindACommaOutUnlessAFileHasThem) {
  TemporaryFolder folder;
  for (const char* name : {"a", "b"}) records(folder, name, 1);
  const std::string a = folder / "a", b = folder / "b";
  EXPECT_EQ(found(folder, a + ", " + b + " "), (Names{"a.rec", "b.rec"}));
  expect_error([&] { find_records(a + ", c"); }, "c: no such file");
  expect_error<UsageError>([&] { find_records(a + ", "); }, "holds an empty name");
  records(folder, "b ", 1);
  EXPECT_EQ(found(folder, a + "," + b + " "), (Names{"a.rec", "b .rec"}));
}

TEST(FindRecords, TakesAPrefixInTheOrderOfItsNumbers) {
  TemporaryFolder folder;
  for (int i = 0; i < 11; ++i) records(folder, fmt::format("p_{}", i), 1);
  const Names names = found(folder, folder / "p");
  ASSERT_EQ(names.size(), 11u);
  EXPECT_EQ(names[2], "p_2.rec");
  EXPECT_EQ(names[10], "p_10.rec");
}

TEST(FindRecords, ANameThatIsLongerThanAFilesCanBeIsNotThere) {
  TemporaryFolder folder;
  records(folder, "p", 1);
  expect_error([&] { find_records(folder / std::string(300, 'x')); }, "no such file");
  std::string many;
  for (int i = 0; i < 40; ++i) many += fmt::format("{}{}.rec", i == 0 ? "" : ",", "missing");
  expect_error([&] { find_records(many); }, "missing.rec: no such file");
}

TEST(FindRecords, TakesPatternsAndListsAndPlainPrefixes) {
  TemporaryFolder folder;
  for (const char* name : {"p_0", "p_1", "q"}) records(folder, name, 1);
  EXPECT_EQ(found(folder, folder / "p_*.rec"), (Names{"p_0.rec", "p_1.rec"}));
  EXPECT_EQ(found(folder, (folder / "q").string() + "," + (folder / "p_0.rec").string()), (Names{"q.rec", "p_0.rec"}));
}

TEST(FindRecords, TakesNoFileBesideRecordsByAPattern) {
  TemporaryFolder folder;
  for (const char* name : {"p_0", "p_1"}) records(folder, name, 1);
  for (const char* name : {"p_0.idx", "p_0.lst", "p_2.rec.part", "p.pack.json"}) write_file_atomic(folder / name, "");
  EXPECT_EQ(found(folder, folder / "p*"), (Names{"p_0.rec", "p_1.rec"}));
  expect_error([&] { find_records(folder / "p*.lst"); }, "no record file has such a name");
}

TEST(FindRecords, SaysWhichPartOfASetIsMissing) {
  TemporaryFolder folder;
  for (const char* name : {"p_0", "p_2"}) records(folder, name, 1);
  expect_error([&] { find_records(folder / "p"); }, "p_1.rec is not there");
  expect_error([&] { find_records(folder / "x"); }, "x: no such file");
  expect_error([&] { find_records(folder / "x*.rec"); }, "no record file has such a name");
}

TEST(FindRecords, RefusesWhatAnInterruptedPackHasYetToMake) {
  TemporaryFolder folder;
  for (const char* name : {"p_train_0", "p_train_1", "p_train_2", "p_val_0", "q", "q_1"}) records(folder, name, 1);
  const auto unfinished = [&](const char* document, const std::string& files) {
    write_file_atomic(folder / document, fmt::format(R"({{"plan": "1f", "files": [], "unfinished": [{}]}})", files));
  };
  unfinished("p.pack.json", R"("p_train_2.rec", "p_train_3.rec")");  // one of the set before, and one that is missing
  constexpr const char* kSaid = "p_train_2.rec: is not finished, as ";
  for (const char* name : {"p_train", "p_train_2", "p_train_2.rec", "p_train_*.rec"})
    expect_error([&] { find_records(folder / name); }, kSaid);
  expect_error([&] { find_records((folder / "q").string() + "," + (folder / "p_train_2").string()); }, kSaid);
  EXPECT_EQ(found(folder, folder / "p_train_1.rec"), Names{"p_train_1.rec"}) << "it is finished";
  EXPECT_EQ(found(folder, folder / "p_val"), Names{"p_val_0.rec"});
  unfinished("p.pack.json", R"("p_train_3.rec")");
  expect_error([&] { find_records(folder / "p_train"); }, "run the same command again");
  for (const char* pattern : {"p_*", "p_train_[0-9].rec", "*.rec"})
    expect_error([&] { find_records(folder / pattern); }, "p_train_3.rec: is not finished, as ");
  EXPECT_EQ(found(folder, folder / "p_train_[12].rec").size(), 2u) << "the missing file is not meant";
  EXPECT_EQ(found(folder, folder / "p_train_2.rec"), Names{"p_train_2.rec"});
  for (const char* document : {"q.pack.json", "q_1.pack.json"}) unfinished(document, R"("q.rec", "q_1.rec")");
  for (const char* name : {"q", "q.", "q.rec", "q_1"})
    expect_error([&] { find_records(folder / name); }, ".rec: is not finished, as ");
  unfinished("q.pack.json", "1");
  EXPECT_EQ(found(folder, folder / "q"), Names{"q.rec"}) << "a damaged document says nothing";
}

TEST(FindRecords, KnowsTheLastPartsOfASetFromWhatWasPacked) {
  TemporaryFolder folder;
  for (const char* name : {"p_0", "p_train_0", "p_train_1", "p_val_0"}) records(folder, name, 1);
  const auto pack_wrote = [&](const std::string& files) {
    write_file_atomic(folder / "p.pack.json", fmt::format(R"({{"plan": "1f", "files": [{}]}})", files));
  };
  pack_wrote(R"({"file": "p_0.rec"}, {"file": "p_1.rec"})");
  expect_error([&] { find_records(folder / "p"); }, "p_1.rec is not there, but ");
  EXPECT_EQ(found(folder, folder / "p_0.rec"), Names{"p_0.rec"}) << "who names a file means this one";
  EXPECT_EQ(found(folder, folder / "p_train").size(), 2u) << "of another set";
  pack_wrote(
      R"({"file": "p_train_0.rec"}, {"file": "p_train_1.rec"}, {"file": "p_val_0.rec"}, {"file": "p_val_1.rec"})");
  EXPECT_EQ(found(folder, folder / "p_train").size(), 2u);
  expect_error([&] { find_records(folder / "p_val"); }, "p_val_1.rec is not there, but ");
  write_file_atomic(folder / "p.pack.json", "{");
  EXPECT_EQ(found(folder, folder / "p_val"), Names{"p_val_0.rec"});
  std::filesystem::remove(folder / "p.pack.json");
  std::filesystem::create_symlink("/proc/self/mem", folder / "p.pack.json");  // reading its beginning is an I/O error
  EXPECT_THROW(read_file(folder / "p.pack.json"), Error);
  EXPECT_EQ(found(folder, folder / "p_val"), Names{"p_val_0.rec"});
}

TEST(FindRecords, TakesAPrefixInAFolderWhoseNameLooksLikeAPattern) {
  TemporaryFolder folder;
  make_folder(folder / "r[1]");
  for (const char* name : {"r[1]/p", "r[1]/q_0", "r[1]/q_1"}) records(folder, name, 1);
  EXPECT_EQ(found(folder, folder / "r[1]/p"), Names{"r[1]/p.rec"});
  EXPECT_EQ(found(folder, folder / "r[1]/q"), (Names{"r[1]/q_0.rec", "r[1]/q_1.rec"}));
}

TEST(FindRecords, NamesTheSplitsOfAPrefix) {
  TemporaryFolder folder;
  for (const char* name : {"p_train_0", "p_train_1", "p_val"}) records(folder, name, 1);
  const std::string prefix = folder / "p";
  expect_error([&] { find_records(prefix); },
               fmt::format("p: no such file | name a split that is there: {0}_train, {0}_val", prefix));
}

TEST(FindRecords, NamesTheSetsOfAFolder) {
  TemporaryFolder folder;
  make_folder(folder / "d");
  for (const char* name : {"d/p_train_0", "d/p_train_1", "d/p_val", "d/cifar_10"}) records(folder, name, 1);
  const std::string given = folder / "d";
  expect_error([&] { find_records(given); },
               fmt::format("d: is a folder | name a set that is in it: {0}/cifar_10, {0}/p_train, {0}/p_val", given));
  make_folder(folder / "photos");
  const std::string pictures = folder / "photos";
  expect_error([&] { find_records(pictures); },
               fmt::format("photos: is a folder | `dtrain data pack {} --out p` makes records", pictures));
}

TEST(FindRecords, TakesANameWithACommaAsAWholeFirst) {
  TemporaryFolder folder;
  make_folder(folder / "a,b");
  for (const char* name : {"a,b/p_train", "a,b/q_0", "a,b/q_1", "c"}) records(folder, name, 1);
  EXPECT_EQ(found(folder, folder / "a,b/p_train"), Names{"a,b/p_train.rec"});
  EXPECT_EQ(found(folder, folder / "a,b/q"), (Names{"a,b/q_0.rec", "a,b/q_1.rec"}));
  EXPECT_EQ(found(folder, folder / "a,b/q_?.rec"), (Names{"a,b/q_0.rec", "a,b/q_1.rec"}));
  expect_error([&] { find_records((folder / "c").string() + ",d"); }, "d: no such file");
}

// What malloc gave out and has not got back.
std::size_t bytes_in_use() {
  const auto info = ::mallinfo2();
  return info.uordblks + info.hblkhd;
}

TEST(RecordSet, KnowsOfEachRecordInLessThan64Bytes) {
  constexpr std::uint32_t kRecords = 300000;
  TemporaryFolder folder;
  RecordWriter writer(folder / "many.rec");
  for (std::uint32_t id = 0; id < kRecords; ++id) writer.add(id, 0, bytes_of("x"));
  writer.finish();
  const std::size_t before = bytes_in_use();
  const RecordSet set({folder / "many.rec"});
  const auto order = epoch_order(1, 1, kRecords);
  const std::size_t used = bytes_in_use() - before;
  EXPECT_LE(used, 64u * kRecords);
#if !defined __SANITIZE_ADDRESS__ && !defined __SANITIZE_THREAD__  // they bring a malloc of their own
  EXPECT_GE(used, 12u * kRecords) << "the measurement misses what it should see";
#endif
}

}  // namespace
}  // namespace dtrain::data
