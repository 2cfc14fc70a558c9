
search();
timeline();
addEventListener("hashchange", unfold);
unfold();
document.documentElement.dataset.ready = "yes";
