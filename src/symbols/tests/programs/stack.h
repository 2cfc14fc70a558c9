/* Tells where it was called from: one line a frame, `image offset`, innermost first. */
#ifdef __cplusplus
extern "C"
#endif
void tell_stack(void);
