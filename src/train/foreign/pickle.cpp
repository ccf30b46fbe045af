#include "pickle.hpp"

#include <algorithm>
#include <array>
#include <unordered_map>

namespace dtrain::train {
namespace {

constexpr std::size_t kMostValues = 10 * kMostTensors;  // a state dict has some ten for each tensor
constexpr std::size_t kMostDimensions = 16;
constexpr std::size_t kLongestKey = 1024;  // of a storage; PyTorch's are numbers

struct KnownGlobal {
  std::string_view module, name;
  PickleGlobal kind;
  std::string_view dtype;
};
constexpr std::array<KnownGlobal, 13> kGlobals = {{
    {"collections", "OrderedDict", PickleGlobal::ordered_dict, ""},
    {"torch._utils", "_rebuild_tensor_v2", PickleGlobal::rebuild_tensor, ""},
    {"torch._utils", "_rebuild_parameter", PickleGlobal::rebuild_parameter, ""},
    {"torch", "DoubleStorage", PickleGlobal::storage_type, "F64"},
    {"torch", "FloatStorage", PickleGlobal::storage_type, "F32"},
    {"torch", "HalfStorage", PickleGlobal::storage_type, "F16"},
    {"torch", "BFloat16Storage", PickleGlobal::storage_type, "BF16"},
    {"torch", "LongStorage", PickleGlobal::storage_type, "I64"},
    {"torch", "IntStorage", PickleGlobal::storage_type, "I32"},
    {"torch", "ShortStorage", PickleGlobal::storage_type, "I16"},
    {"torch", "CharStorage", PickleGlobal::storage_type, "I8"},
    {"torch", "ByteStorage", PickleGlobal::storage_type, "U8"},
    {"torch", "BoolStorage", PickleGlobal::storage_type, "BOOL"},
}};

enum Opcode : std::uint8_t {
  kMark = '(',
  kStop = '.',
  kPop = '0',
  kPopMark = '1',
  kDuplicate = '2',
  kBinFloat = 'G',
  kBinInt = 'J',
  kBinInt1 = 'K',
  kBinInt2 = 'M',
  kNone = 'N',
  kBinPersId = 'Q',
  kReduce = 'R',
  kBinString = 'T',
  kShortBinString = 'U',
  kBinUnicode = 'X',
  kEmptyList = ']',
  kAppend = 'a',
  kBuild = 'b',
  kGlobal = 'c',
  kAppends = 'e',
  kGet = 'h',
  kLongGet = 'j',
  kList = 'l',
  kPut = 'q',
  kLongPut = 'r',
  kSetItem = 's',
  kTuple = 't',
  kEmptyTuple = ')',
  kSetItems = 'u',
  kEmptyDictionary = '}',
  kBinBytes = 'B',
  kShortBinBytes = 'C',
  kProtocol = 0x80,
  kTuple1 = 0x85,
  kTuple2 = 0x86,
  kTuple3 = 0x87,
  kTrue = 0x88,
  kFalse = 0x89,
  kLong1 = 0x8a,
  kShortUnicode = 0x8c,
  kUnicode8 = 0x8d,
  kStackGlobal = 0x93,
  kMemoize = 0x94,
  kFrame = 0x95,
};

// The stack machine that a pickle is a program for. Marks lie on the stack as null pointers.
class PickleMachine {
 public:
  PickleMachine(std::deque<PickleValue>& values, ByteReader& reader) : values_(values), reader_(reader) {}

  const PickleValue& run() {
    for (;;) {
      const auto opcode = reader_.number<std::uint8_t>();
      if (opcode == kStop) return *pop();
      step(opcode);
    }
  }

 private:
  using Value = PickleValue*;

  void step(std::uint8_t opcode) {
    if (!step_scalar(opcode) && !step_memo(opcode) && !step_container(opcode) && !step_object(opcode)) {
      reader_.fail(fmt::format("the pickle operation 0x{:02x}, which no tensors need", opcode));
    }
  }

  bool step_scalar(std::uint8_t opcode) {
    switch (opcode) {
      case kNone:
        push({});
        return true;
      case kTrue:
      case kFalse:
        push(std::int64_t{opcode == kTrue});
        return true;
      case kBinInt:
        push(std::int64_t{reader_.number<std::int32_t>()});
        return true;
      case kBinInt1:
        push(std::int64_t{reader_.number<std::uint8_t>()});
        return true;
      case kBinInt2:
        push(std::int64_t{reader_.number<std::uint16_t>()});
        return true;
      case kLong1:
        push_long(reader_.take(reader_.number<std::uint8_t>()));
        return true;
      case kBinFloat:
        reader_.take(8);
        push({});
        return true;
      case kShortBinString:
      case kShortBinBytes:
      case kShortUnicode:
        push_text(reader_.number<std::uint8_t>());
        return true;
      case kBinString:
      case kBinBytes:
      case kBinUnicode:
        push_text(reader_.number<std::uint32_t>());
        return true;
      case kUnicode8:
        push_text(reader_.number<std::uint64_t>());
        return true;
      default:
        return false;
    }
  }

  bool step_memo(std::uint8_t opcode) {
    switch (opcode) {
      case kProtocol:
        reader_.take(1);
        return true;
      case kFrame:
        reader_.take(8);
        return true;
      case kPut:
        remember(reader_.number<std::uint8_t>());
        return true;
      case kLongPut:
        remember(reader_.number<std::uint32_t>());
        return true;
      case kMemoize:
        remember(static_cast<std::uint32_t>(memo_.size()));
        return true;
      case kGet:
        recall(reader_.number<std::uint8_t>());
        return true;
      case kLongGet:
        recall(reader_.number<std::uint32_t>());
        return true;
      case kPop:
        if (stack_.empty()) reader_.fail("nothing on the stack");
        stack_.pop_back();
        return true;
      case kPopMark:
        pop_to_mark();
        return true;
      case kDuplicate:
        push_again(top());
        return true;
      case kMark:
        push_again(nullptr);
        return true;
      default:
        return false;
    }
  }

  bool step_container(std::uint8_t opcode) {
    switch (opcode) {
      case kEmptyDictionary:
        push(PickleDictionary{});
        return true;
      case kEmptyList:
      case kEmptyTuple:
        push(PickleList{});
        return true;
      case kTuple:
      case kList:
        push(PickleList{pop_to_mark()});
        return true;
      case kTuple1:
      case kTuple2:
      case kTuple3:
        push(PickleList{pop_many(opcode - kTuple1 + 1u)});
        return true;
      case kAppend:
        append(pop_many(1));
        return true;
      case kAppends:
        append(pop_to_mark());
        return true;
      case kSetItem:
        set_items(pop_many(2));
        return true;
      case kSetItems:
        set_items(pop_to_mark());
        return true;
      default:
        return false;
    }
  }

  bool step_object(std::uint8_t opcode) {
    switch (opcode) {
      case kGlobal: {
        const std::string_view module = reader_.line();
        push_global(module, reader_.line());
        return true;
      }
      case kStackGlobal: {
        const std::string name = text(pop());
        push_global(text(pop()), name);
        return true;
      }
      case kBinPersId:
        count_tensor(storages_);
        push(storage(list(pop())));
        return true;
      case kReduce: {
        const PickleList& arguments = list(pop());
        reduce(get<PickleName>(pop(), "a function"), arguments);
        return true;
      }
      case kBuild: {  // attributes of a dictionary, such as _metadata of a state dict
        pop();
        if (!std::holds_alternative<PickleDictionary>(top()->value)) reader_.fail("attributes of something unknown");
        return true;
      }
      default:
        return false;
    }
  }

  void push(decltype(PickleValue::value) value) {
    if (values_.size() >= kMostValues) too_many();
    push_again(&values_.emplace_back(PickleValue{std::move(value)}));
  }
  void push_again(Value value) {
    if (stack_.size() >= kMostValues) too_many();
    stack_.push_back(value);
  }
  [[noreturn]] void too_many() const { reader_.fail("more values than a file of weights has"); }
  void count_tensor(std::size_t& made) const {
    if (++made > kMostTensors) reader_.fail("more tensors than a file of weights has");
  }
  void push_text(std::uint64_t length) { push(std::string(text_of(reader_.take(length)))); }

  // Two's complement. Numbers of more than 64 bits are only the magic number of old files, which have no meaning here.
  void push_long(ByteView bytes) {
    if (bytes.size() > sizeof(std::int64_t)) return push({});
    std::uint64_t number = 0;
    for (std::size_t i = bytes.size(); i-- > 0;) number = number << 8 | std::to_integer<std::uint64_t>(bytes[i]);
    const std::size_t unused = 64 - 8 * bytes.size();
    push(unused == 64 ? std::int64_t{0} : static_cast<std::int64_t>(number << unused) >> unused);
  }

  Value top() const {
    if (stack_.empty() || !stack_.back()) reader_.fail("nothing on the stack");
    return stack_.back();
  }
  Value pop() {
    const Value value = top();
    stack_.pop_back();
    return value;
  }
  std::vector<const PickleValue*> pop_many(std::size_t count) {
    std::vector<const PickleValue*> popped(count);
    for (std::size_t i = count; i-- > 0;) popped[i] = pop();
    return popped;
  }
  std::vector<const PickleValue*> pop_to_mark() {
    const auto mark = std::find(stack_.rbegin(), stack_.rend(), nullptr);
    if (mark == stack_.rend()) reader_.fail("no mark on the stack");
    std::vector<const PickleValue*> popped(mark.base(), stack_.end());
    stack_.erase(mark.base() - 1, stack_.end());
    return popped;
  }

  void remember(std::uint32_t number) {
    if (memo_.size() >= kMostValues) too_many();
    memo_[number] = top();
  }
  void recall(std::uint32_t number) {
    const auto found = memo_.find(number);
    if (found == memo_.end()) reader_.fail(fmt::format("no value {} is remembered", number));
    push_again(found->second);
  }

  void append(const std::vector<const PickleValue*>& items) {
    auto* target = std::get_if<PickleList>(&top()->value);
    if (!target) reader_.fail("items without a list");
    target->items.insert(target->items.end(), items.begin(), items.end());
  }
  void set_items(const std::vector<const PickleValue*>& items) {
    auto* target = std::get_if<PickleDictionary>(&top()->value);
    if (!target || items.size() % 2 != 0) reader_.fail("items without a dictionary");
    for (std::size_t i = 0; i < items.size(); i += 2) target->items.emplace_back(items[i], items[i + 1]);
  }

  template <typename Kind>
  const Kind& get(const PickleValue* value, std::string_view what) const {
    const auto* found = std::get_if<Kind>(&value->value);
    if (!found) reader_.fail(fmt::format("{} was expected", what));
    return *found;
  }
  const std::string& text(const PickleValue* value) const { return get<std::string>(value, "a text"); }
  const PickleList& list(const PickleValue* value) const { return get<PickleList>(value, "a list"); }
  std::int64_t number(const PickleValue* value) const { return get<std::int64_t>(value, "a number"); }

  void push_global(std::string_view module, std::string_view name) {
    const auto* known = std::ranges::find_if(
        kGlobals, [&](const KnownGlobal& global) { return global.module == module && global.name == name; });
    if (known != kGlobals.end()) return push(PickleName{known->kind, known->dtype});
    constexpr std::size_t kLongestShown = 80;
    reader_.fail(fmt::format("it would run {}.{}, and dtrain runs nothing that a file names",
                             module.substr(0, kLongestShown), name.substr(0, kLongestShown)));
  }

  // ("storage", type, key, place, elements), and in old files None or a view of another storage.
  PickleStorage storage(const PickleList& parts) const {
    if (parts.items.size() < 5 || text(parts.items[0]) != "storage") reader_.fail("no storage of a tensor");
    if (parts.items.size() > 5 && !std::holds_alternative<std::monostate>(parts.items[5]->value)) {
      reader_.fail("a storage that is part of another one");
    }
    const std::string& key = text(parts.items[2]);
    if (key.size() > kLongestKey) reader_.fail(fmt::format("a storage with a key of {} bytes", key.size()));
    return {.key = key,
            .dtype = get<PickleName>(parts.items[1], "the type of a storage").dtype,
            .elements = number(parts.items[4])};
  }

  std::vector<std::int64_t> extents(const PickleValue* value) const {
    const PickleList& parts = list(value);
    if (parts.items.size() > kMostDimensions) reader_.fail(fmt::format("{} dimensions", parts.items.size()));
    std::vector<std::int64_t> numbers;
    for (const PickleValue* part : parts.items) numbers.push_back(number(part));
    return numbers;
  }

  void reduce(const PickleName& function, const PickleList& arguments) {
    const std::size_t count = arguments.items.size();
    if (function.kind == PickleGlobal::ordered_dict && count == 0) return push(PickleDictionary{});
    count_tensor(tensors_);
    if (function.kind == PickleGlobal::rebuild_tensor && count >= 4) {
      return push(PickleTensor{.storage = &get<PickleStorage>(arguments.items[0], "a storage"),
                               .offset = number(arguments.items[1]),
                               .shape = extents(arguments.items[2]),
                               .strides = extents(arguments.items[3])});
    }
    if (function.kind == PickleGlobal::rebuild_parameter && count >= 1) {
      return push(get<PickleTensor>(arguments.items[0], "a tensor"));
    }
    reader_.fail(fmt::format("{} arguments, which make no tensor", count));
  }

  std::deque<PickleValue>& values_;
  ByteReader& reader_;
  std::vector<Value> stack_;
  std::unordered_map<std::uint32_t, Value> memo_;
  std::size_t storages_ = 0, tensors_ = 0;
};

}  // namespace

std::vector<const PickleStorage*> Pickle::storages() const {
  std::vector<const PickleStorage*> found;
  for (const PickleValue& value : values_) {
    if (const auto* storage = std::get_if<PickleStorage>(&value.value)) found.push_back(storage);
  }
  return found;
}

const PickleValue& Pickle::read(ByteReader& reader) { return PickleMachine(values_, reader).run(); }

}  // namespace dtrain::train
