/* What the driver passes by value: the handles of cuIpcOpenMemHandle and cuIpcOpenEventHandle. */
struct bytes64 {
    uint64_t words[8];
};
static uint64_t fold(struct bytes64 value) {
    uint64_t sum = 0;
    for (int i = 0; i < 8; i++)
        sum = sum * 31 + value.words[i];
    return sum;
}
